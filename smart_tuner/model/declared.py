"""Inputs and outputs as a graph declares them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smart_tuner.errors import ModelError
from smart_tuner.model.dtypes import UNKNOWN
from smart_tuner.model.graph import weight_names
from smart_tuner.model.onnx_codes import NAME_OF_CODE
from smart_tuner.model.spec import TensorSpec

if TYPE_CHECKING:
    from pathlib import Path

    from onnx import GraphProto, TensorShapeProto, ValueInfoProto

    from smart_tuner.model.spec import Dimension

_NO_SYMBOLS = frozenset({"", "-1", "none", "null"})


def declared_inputs(graph: GraphProto, path: Path) -> tuple[TensorSpec, ...]:
    """Inputs that a caller has to feed: those with a weight behind them are left out.

    Raises:
        ModelError: An input is not a tensor, or of no known type.
    """
    weights = set(weight_names(graph))
    specs = (_spec(e, "input", path) for e in graph.input if e.name not in weights)
    return tuple(specs)


def declared_outputs(graph: GraphProto, path: Path) -> tuple[TensorSpec, ...]:
    """Outputs, each name once; the runtime finds out the type where none is declared.

    Raises:
        ModelError: An output is not a tensor.
    """
    entries = {entry.name: entry for entry in graph.output}
    return tuple(_spec(entry, "output", path) for entry in entries.values())


def _spec(entry: ValueInfoProto, role: str, path: Path) -> TensorSpec:
    kind = entry.type.WhichOneof("value")
    if kind not in ("tensor_type", None):
        what = kind.removesuffix("_type").replace("_", " ")
        msg = (
            f"{path}: {role} {entry.name!r} is a {what}, only dense tensors can be fed and "
            "compared; export the model with tensors in its place."
        )
        raise ModelError(msg)
    tensor = entry.type.tensor_type
    dtype = NAME_OF_CODE.get(tensor.elem_type, UNKNOWN)
    if dtype == UNKNOWN and (role == "input" or tensor.elem_type):
        msg = (
            f"{path}: {role} {entry.name!r} has element type {tensor.elem_type}, which this "
            "version of onnx does not know; declare the type, or install a newer onnx."
        )
        raise ModelError(msg)
    shape = _dimensions(tensor.shape) if tensor.HasField("shape") else None
    return TensorSpec(entry.name, dtype, shape)


def _dimensions(shape: TensorShapeProto) -> tuple[Dimension, ...]:
    sizes: list[Dimension] = []
    for dimension in shape.dim:
        if dimension.WhichOneof("value") == "dim_value":
            sizes.append(dimension.dim_value if dimension.dim_value >= 0 else None)
        else:
            sizes.append(_symbol(dimension.dim_param))
    return tuple(sizes)


def _symbol(text: str) -> str | None:
    """A name that stands for one size everywhere.

    Converters write ``?`` and the like for every size they do not know, so equal marks of that
    kind say nothing: PP-OCRv4 has it for two different sizes of one image.
    """
    bare = text.strip()
    return None if bare.lower() in _NO_SYMBOLS or not bare.strip("?*") else bare
