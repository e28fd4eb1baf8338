"""Constants of a graph as arrays, and their forms in other element types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from smart_tuner.precision.ranges import FP8_LARGEST
from smart_tuner.precision.support import BF16, FP16
from smart_tuner.precision.view import opset_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import numpy.typing as npt
    from onnx import ModelProto, NodeProto, TensorProto

    Array = npt.NDArray[Any]
    Floats = npt.NDArray[np.float32]

HALF_TYPES: Mapping[str, np.dtype[Any]] = {
    FP16: np.dtype(np.float16),
    BF16: np.dtype(ml_dtypes.bfloat16),
}


class Constants:
    """Reads and computes constants, each once.

    Args:
        model: The model; its weights may lie in files of ``folder``.
        nodes: Nodes of its main graph.
        folder: Where its external data lies.
    """

    def __init__(self, model: ModelProto, nodes: list[NodeProto], folder: Path) -> None:
        self._folder = folder
        self._opset = opset_of(model)
        self._weights = {weight.name: weight for weight in model.graph.initializer}
        self._makers = {name: node for node in nodes for name in node.output if name}
        self._known: dict[str, Array] = {}

    def __getitem__(self, name: str) -> Array:
        """The content of a constant.

        Raises:
            KeyError: It is not constant, or cannot be computed here.
        """
        if name not in self._known:
            weight = self._weights.get(name)
            if weight is not None:
                self._known[name] = read_tensor(weight, self._folder)
            else:
                self._compute(self._makers[name])
        return self._known[name]

    def get(self, name: str) -> Array | None:
        """The content of a constant; ``None`` for what is none, or cannot be computed here."""
        try:
            return self[name]
        except KeyError:
            return None

    def _compute(self, node: NodeProto) -> None:
        inputs = {name: self[name] for name in node.input if name}
        kinds = [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
            )
            for name, array in inputs.items()
        ]
        outputs = [name for name in node.output if name]
        graph = helper.make_graph(
            [node], "constant", kinds, [onnx.ValueInfoProto(name=name) for name in outputs]
        )
        small = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self._opset)])
        try:
            found = ReferenceEvaluator(small).run(outputs, inputs)
        except Exception as error:  # whatever the evaluator lacks
            msg = f"{node.op_type} cannot be computed"
            raise KeyError(msg) from error
        self._known.update(zip(outputs, map(np.asarray, found), strict=True))


def read_tensor(weight: TensorProto, folder: Path) -> Array:
    """The content of a stored tensor, out of its file beside the model if that is where it is."""
    array: Array = numpy_helper.to_array(weight, str(folder))
    return array


def as_half(array: Array, value: str) -> Array:
    """An array in half precision: what is finite stays finite, what is not 0 stays so.

    Masks of attention hold the most negative float32, and divisors tiny ones.
    """
    kind = HALF_TYPES[value]
    info: Any = ml_dtypes.finfo(kind)  # type: ignore[no-untyped-call]
    largest, tiny = float(info.max), float(info.smallest_subnormal)
    wide = array.astype(np.float32)
    small = (wide != 0) & (np.abs(wide) < tiny)
    wide = np.where(small, np.copysign(np.float32(tiny), wide), wide)
    finite = np.where(np.isfinite(wide), np.clip(wide, -largest, largest), wide)
    return finite.astype(kind)


def quantized_weights(array: Array, axis: int | None, limit: int) -> tuple[Array, Floats]:
    """Symmetric 8-bit weights with one scale a channel, or one for all.

    Args:
        array: The weights.
        axis: The channels' axis; ``None`` for a single scale.
        limit: Largest magnitude, at most 127.

    Returns:
        ``int8`` weights of the same shape, and scales of shape (channels,) or ().
    """
    scales, wide = _scales(array, axis, limit)
    return np.clip(np.rint(array / wide), -limit, limit).astype(np.int8), scales


def float8_weights(array: Array, axis: int | None) -> tuple[Array, Floats]:
    """As ``quantized_weights``, in float8_e4m3fn."""
    scales, wide = _scales(array, axis, FP8_LARGEST)
    stored = np.clip(array / wide, -FP8_LARGEST, FP8_LARGEST)
    return stored.astype(ml_dtypes.float8_e4m3fn), scales


def _scales(array: Array, axis: int | None, limit: float) -> tuple[Floats, Floats]:
    """One scale a channel, and the same so that it broadcasts."""
    others = None if axis is None else tuple(a for a in range(array.ndim) if a != axis)
    largest = np.abs(array).max(axis=others, initial=0.0)
    scales = np.asarray(np.where(largest > 0, largest / limit, 1.0), np.float32)
    if axis is None:
        return scales, scales
    return scales, scales.reshape([-1 if a == axis else 1 for a in range(array.ndim)])
