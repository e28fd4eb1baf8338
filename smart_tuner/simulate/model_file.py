"""The file beside a model that says how the replay backend answers for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx
from onnx import TensorProto, helper

from smart_tuner.errors import UserInputError
from smart_tuner.simulate.description import (
    MAX_CHARACTERS,
    Description,
    read_description,
    write_description,
)

if TYPE_CHECKING:
    from pathlib import Path

    from smart_tuner.simulate.compiler import SimulatedCompiler
    from smart_tuner.simulate.recorded import RecordedCompiler

_SHAPE = (1, 16)
# Old enough for every runtime that this package supports.
_OPSET, _IR = 13, 8


def description_path(model: Path) -> Path:
    """Return where the description of a model lies: ``<model file>.replay.json``."""
    return model.with_name(f"{model.name}.replay.json")


def load_description(model: Path) -> Description:
    """Read the description beside a model.

    Raises:
        UserInputError: There is none, or it is not valid.
    """
    path = description_path(model)
    try:
        if path.stat().st_size > 4 * MAX_CHARACTERS:
            msg = f"{path}: too large for a replay description."
            raise UserInputError(msg)
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        msg = f"{path}: {error.strerror}; the replay backend needs this description of a compiler."
        raise UserInputError(msg) from None
    except UnicodeDecodeError:
        msg = f"{path}: not a text file; write it with write_simulated_model."
        raise UserInputError(msg) from None
    try:
        return read_description(text)
    except UserInputError as error:
        msg = f"{path}: {error}"
        raise UserInputError(msg) from None


def write_simulated_model(
    folder: Path,
    compiler: SimulatedCompiler | RecordedCompiler,
    *,
    name: str = "model",
    real_seconds: float = 0.0,
    seed: int | None = None,
) -> Path:
    """Write a tiny ONNX model and, beside it, the compiler that pretends to build it.

    The model takes ``x`` and gives ``y``, both float32 of shape (1, 16); real runtimes run it
    too.

    Args:
        folder: An existing folder.
        compiler: What the replay backend shall answer from.
        name: File name without its ending.
        real_seconds: Seconds that really pass for each simulated second.
        seed: Makes builds and measurements repeatable.

    Returns:
        Path of the model file.
    """
    path = folder / f"{name}.onnx"
    graph = helper.make_graph(
        [helper.make_node("Mul", ["x", "x"], ["y"])],
        "simulated",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, _SHAPE)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, _SHAPE)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)])
    model.ir_version = _IR
    onnx.save(model, str(path))
    text = write_description(Description(compiler, real_seconds, seed))
    description_path(path).write_text(text, encoding="utf-8")
    return path
