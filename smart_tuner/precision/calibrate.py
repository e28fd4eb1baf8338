"""Measuring the ranges of activations on reference inputs, in a process of its own.

``python -m smart_tuner.precision.calibrate FOLDER`` reads ``request.json`` there and writes
``ranges.json``, or ``error.txt`` with one line. The calibrators are those of onnxruntime's
quantization tool; this module alone imports it.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from smart_tuner.engine.once import end_with_parent, run_once
from smart_tuner.errors import EnvironmentNotFit, ModelError
from smart_tuner.model.external import external_files
from smart_tuner.model.scratch import scratch_folder
from smart_tuner.model.tensors import load_tensors
from smart_tuner.precision.ranges import read_ranges, write_ranges
from smart_tuner.precision.view import load_bare

if TYPE_CHECKING:
    from collections.abc import Sequence

    from smart_tuner.precision.ranges import Ranges

METHODS = ("minmax", "entropy", "percentile")

_CHILD = "smart_tuner.precision.calibrate"
_REQUEST, _ANSWER, _ERROR = "request.json", "ranges.json", "error.txt"


def measure_ranges(
    model: Path, source: Path, inputs: Sequence[Path], method: str, deadline_seconds: float
) -> Ranges:
    """Run a model on reference inputs and return the range of each of its tensors.

    Args:
        model: From ``prepared_model``.
        source: The user's model, beside which its external data lies.
        inputs: Tensor files, at least one.
        method: One of ``METHODS``.
        deadline_seconds: After so many the process is killed.

    Raises:
        ModelError: The model does not run, or takes too long.
        EnvironmentNotFit: onnxruntime's quantization tool is missing.
    """
    with scratch_folder() as folder:
        beside = _with_data(model, source, folder)
        request = {
            "model": str(beside),
            "inputs": [str(path) for path in inputs],
            "method": method,
            "has_data": beside != model,
            "search_path": sys.path,
            "parent": os.getpid(),
        }
        (folder / _REQUEST).write_text(json.dumps(request), encoding="utf-8")
        ended = run_once(_CHILD, folder, deadline_seconds)
        if (folder / _ERROR).is_file():
            raise EnvironmentNotFit((folder / _ERROR).read_text(encoding="utf-8"))
        if not (folder / _ANSWER).is_file():
            msg = (
                f"{source}: the ranges of its tensors cannot be measured ({ended}); give "
                "--precisions without int8 and fp8."
            )
            raise ModelError(msg)
        return read_ranges(folder / _ANSWER)


def _with_data(model: Path, source: Path, folder: Path) -> Path:
    """The model where the data that it refers to lies beside it."""
    data = external_files(load_bare(str(model)), source)
    if not data:
        return model
    for file in data:
        copy = folder / file.relative_to(source.parent)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
    return Path(shutil.copyfile(model, folder / model.name))


class _Reader:
    """One pair of reference inputs after the other, as the calibrators ask for them."""

    def __init__(self, path: Path) -> None:
        self._waiting = [load_tensors(path)]

    def get_next(self) -> dict[str, Any] | None:
        """The next inputs; ``None`` at the end."""
        return dict(self._waiting.pop()) if self._waiting else None


def _ranges(folder: Path, request: dict[str, Any]) -> Ranges:
    """Run onnxruntime's calibrator."""
    from onnxruntime import set_default_logger_severity  # noqa: PLC0415, only in the child
    from onnxruntime.quantization import calibrate  # noqa: PLC0415, only in the child

    set_default_logger_severity(3)
    kinds = calibrate.CalibrationMethod
    method = {"minmax": kinds.MinMax, "entropy": kinds.Entropy, "percentile": kinds.Percentile}
    calibrator = calibrate.create_calibrator(
        Path(request["model"]),
        augmented_model_path=str(folder / "augmented.onnx"),
        calibrate_method=method[request["method"]],
        use_external_data_format=request["has_data"],
        extra_options={"symmetric": False},
    )
    for path in request["inputs"]:
        calibrator.collect_data(_Reader(Path(path)))
    found: Ranges = {}
    for name, data in calibrator.compute_data().items():
        low, high = data.range_value
        found[name] = (float(np.min(low)), float(np.max(high)))
    return found


def main(arguments: Sequence[str]) -> int:
    """Entry point of the child."""
    folder = Path(arguments[0])
    request = json.loads((folder / _REQUEST).read_text(encoding="utf-8"))
    end_with_parent(request["parent"])
    sys.path[:] = request["search_path"]
    warnings.simplefilter("ignore")
    try:
        write_ranges(folder / _ANSWER, _ranges(folder, request))
    except ImportError as error:
        text = f"onnxruntime's quantization tool does not load ({error}): pip install onnxruntime."
        (folder / _ERROR).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
