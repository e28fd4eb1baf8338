"""Reference outputs that nobody gave: made by an engine with every optimization off.

A backend may name another one for it: an engine that is checked against a sibling of its own
compiler shares that compiler's mistakes.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from smart_tuner.engine.backend import load_backend
from smart_tuner.errors import EnvironmentNotFit, ModelError, TrialError, UserInputError
from smart_tuner.model.shapes import format_shapes
from smart_tuner.trial.arm import RemoteArm
from smart_tuner.trial.baseline import build_request

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from smart_tuner.engine.build import BuildRequest
    from smart_tuner.model.workload import ReferencePair, Workload
    from smart_tuner.trial.options import EvaluatorOptions

_REFUSAL = "No reference outputs can be made: "


@dataclass(frozen=True, slots=True)
class MadeReferences:
    """Who made the missing reference outputs.

    Attributes:
        backend: Name of the backend; empty if none were missing.
        note: Why it was not the one that should have; empty if it was.
    """

    backend: str = ""
    note: str = ""


def make_references(workload: Workload, options: EvaluatorOptions, folder: Path) -> MadeReferences:
    """Write the outputs of every reference pair that has none, held-out pairs too.

    Args:
        workload: Its pairs name the files.
        options: Backend, base and limits.
        folder: Folder for the engine while it is needed, and for the log.

    Raises:
        ModelError: The model does not build or run.
    """
    missing = [
        pair for point in workload.points for pair in point.pairs if not pair.outputs.exists()
    ]
    if not missing:
        return MadeReferences()
    if options.reference_from_baseline:
        _make(workload, options, folder, missing)
        return MadeReferences(options.backend)
    other = getattr(load_backend(options.backend), "reference_backend", options.backend)
    note = ""
    if other != options.backend:
        try:
            # The base speaks of the other compiler.
            _make(workload, replace(options, backend=other, base={}), folder, missing)
        except (ModelError, UserInputError, EnvironmentNotFit) as error:
            reason = str(error).removeprefix(_REFUSAL).rstrip(".")
            note = f"{other} cannot make the reference outputs ({reason}): {options.backend} does."
        else:
            return MadeReferences(other)
    _make(workload, options, folder, missing)
    return MadeReferences(options.backend, note)


def _make(
    workload: Workload,
    options: EvaluatorOptions,
    folder: Path,
    missing: Iterable[ReferencePair],
) -> None:
    request = build_request(workload, options)
    if not options.reference_from_baseline:
        request = replace(request, reference=True)
    workdir = folder / "reference_engine"
    shutil.rmtree(workdir, ignore_errors=True)
    workdir.mkdir(parents=True)
    try:
        _write_outputs(request, workdir, options, missing)
    except (TrialError, ModelError) as error:
        msg = f"{_REFUSAL}{error}{_sizes_hint(workload)}"
        raise ModelError(msg) from error
    finally:
        shutil.rmtree(workdir, ignore_errors=True)


def _sizes_hint(workload: Workload) -> str:
    """The sizes in use, where the model leaves them open: other ones may work."""
    open_names = {
        spec.name
        for spec in workload.model.inputs
        if spec.shape is None or not all(isinstance(size, int) for size in spec.shape)
    }
    if not open_names:
        return ""
    used = "; ".join(
        format_shapes({name: point.shapes[name] for name in point.shapes if name in open_names})
        for point in workload.points
    )
    return f" (sizes in use: {used}; give --shapes if the model needs others)"


def _write_outputs(
    request: BuildRequest, workdir: Path, options: EvaluatorOptions, pairs: Iterable[ReferencePair]
) -> None:
    with RemoteArm(options, workdir.parent / "reference.log") as arm:
        arm.load(arm.build(request, workdir))
        for pair in pairs:
            pair.outputs.parent.mkdir(parents=True, exist_ok=True)
            arm.infer(pair.inputs, pair.outputs)
