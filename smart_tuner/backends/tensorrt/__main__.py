"""Trying a build by hand, on a machine that cannot run the engine.

``python -m smart_tuner.backends.tensorrt MODEL.onnx [SETTING=VALUE ...]`` builds MODEL with
TensorRT-RTX into the current folder. Settings are those of a base, and ``shapes=x:1x3x8x8``.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from smart_tuner.backends.tensorrt.backend import TensorRtRtxBackend
from smart_tuner.engine.build import BuildRequest
from smart_tuner.errors import SmartTunerError, UserInputError
from smart_tuner.model.load import load_model
from smart_tuner.model.public import locate_model
from smart_tuner.model.shapes import parse_shapes, resolve_shapes

_USAGE = (
    "python -m smart_tuner.backends.tensorrt MODEL.onnx compute_capability=80 [NAME=VALUE ...]"
)


def main(arguments: list[str]) -> int:
    """Build and say where; returns the exit code."""
    try:
        _build(arguments)
    except SmartTunerError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


def _build(arguments: list[str]) -> None:
    if not arguments or any("=" not in text for text in arguments[1:]):
        msg = f"Usage: {_USAGE}"
        raise UserInputError(msg)
    base = dict(text.split("=", 1) for text in arguments[1:])
    model = load_model(locate_model(Path(arguments[0])))
    given = base.pop("shapes", "")
    shapes = resolve_shapes(model, parse_shapes([given]) if given else {}).shapes
    folder = Path(tempfile.mkdtemp(prefix="engine-", dir=Path.cwd()))
    request = BuildRequest(model=model.path, base=base, shapes=(shapes,))
    engine = TensorRtRtxBackend().build(request, folder)
    text = (f"{engine.path}: {engine.size_bytes} bytes", *engine.notes)
    sys.stdout.write("\n".join(text) + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
