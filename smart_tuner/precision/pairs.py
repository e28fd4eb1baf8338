"""Pairs of QuantizeLinear and DequantizeLinear on activations, weights and biases."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np

from smart_tuner.precision.ranges import Quantization, quantization
from smart_tuner.precision.support import FP8
from smart_tuner.precision.weights import float8_weights, quantized_weights

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from smart_tuner.precision.editor import Editor
    from smart_tuner.precision.ranges import Ranges
    from smart_tuner.precision.support import Scheme
    from smart_tuner.precision.weights import Array

_KINDS: Mapping[str, np.dtype[Any]] = {
    "uint8": np.dtype(np.uint8),
    "int8": np.dtype(np.int8),
    FP8: np.dtype(ml_dtypes.float8_e4m3fn),
}
_BIAS_LIMIT = 2**31 - 1


@dataclass(slots=True)
class Pairs:
    """Writes pairs, one a tensor.

    Attributes:
        editor: Where they go.
        scheme: How the compiler wants them.
        ranges: Ranges of activations.
    """

    editor: Editor
    scheme: Scheme
    ranges: Ranges
    _scales: dict[tuple[str, str], Quantization] = field(default_factory=dict)
    _weights: dict[tuple[str, str, int | None], tuple[Array, Array]] = field(default_factory=dict)

    def is_read_back(self, name: str, value: str) -> bool:
        """Whether a tensor's own name stands for what 8 bits gave."""
        return (name, value) in self._scales

    def scale(self, name: str, value: str) -> Quantization:
        """How a tensor is quantized; it has a range or is read back from 8 bits already."""
        known = self._scales.get((name, value))
        return known or quantization(self.ranges[name], value, self.scheme)

    def activation(self, name: str, value: str) -> str:
        """An activation in its 8-bit form, read back."""
        if self.is_read_back(name, value):
            return name

        def make() -> str:
            out = self.editor.new_name(name, value)
            self._pair(name, out, name, self.scale(name, value))
            return out

        return self.editor.form(name, value, make)

    def close(self, wide: str, name: str, value: str, scale: Quantization) -> None:
        """Quantize what a node made; the tensor's own name is what is read back."""
        self._pair(wide, name, name, scale)
        self._scales[name, value] = scale

    def weights(self, name: str, array: Array, value: str, axis: int | None) -> str:
        """Weights in 8 bits, read back, with one scale a channel."""

        def make() -> str:
            stored, scales = self._stored(name, array, value, axis)
            zeros = np.zeros(scales.shape, stored.dtype)
            constants = [
                self.editor.weight(name, "scale", scales),
                self.editor.weight(name, "zero", zeros),
            ]
            channels = {} if axis is None else {"axis": axis}
            if self.scheme.stored_weights:
                source = self.editor.weight(name, value, stored)
            else:
                source = self.editor.new_name(name, value)
                self.editor.add("QuantizeLinear", [name, *constants], [source], **channels)
            out = self.editor.new_name(name, f"{value}-read")
            self.editor.add("DequantizeLinear", [source, *constants], [out], **channels)
            return out

        return self.editor.form(name, f"{value} {axis}", make)

    def weight_scales(self, name: str, array: Array, value: str, axis: int | None) -> Array:
        """Scales of weights, shape (channels,) or ()."""
        return self._stored(name, array, value, axis)[1]

    def bias(self, name: str, array: Array, scales: Array) -> str:
        """A bias in 32-bit integers, read back.

        Args:
            name: The bias.
            array: Its content, shape (channels,).
            scales: Scale of the input times that of the weights, shape (channels,) or ().
        """
        scales = np.asarray(scales, np.float32)
        stored = np.clip(np.rint(array / scales.astype(np.float64)), -_BIAS_LIMIT, _BIAS_LIMIT)
        inputs = [
            self.editor.weight(name, "int32", stored.astype(np.int32)),
            self.editor.weight(name, "scale", scales),
            self.editor.weight(name, "zero", np.zeros(scales.shape, np.int32)),
        ]
        out = self.editor.new_name(name, "int32-read")
        self.editor.add("DequantizeLinear", inputs, [out], **({"axis": 0} if scales.ndim else {}))
        return out

    def _stored(
        self, name: str, array: Array, value: str, axis: int | None
    ) -> tuple[Array, Array]:
        key = (name, value, axis)
        if key not in self._weights:
            self._weights[key] = (
                float8_weights(array, axis)
                if value == FP8
                else quantized_weights(array, axis, self.scheme.weight_limit)
            )
        return self._weights[key]

    def _pair(self, source: str, out: str, name: str, scale: Quantization) -> None:
        stored = self.editor.new_name(name, "stored")
        zero = np.asarray(scale.zero).astype(_KINDS[scale.kind])
        constants = [
            self.editor.weight(name, "scale", np.asarray(scale.scale, np.float32)),
            self.editor.weight(name, "zero", zero),
        ]
        self.editor.add("QuantizeLinear", [source, *constants], [stored])
        self.editor.add("DequantizeLinear", [stored, *constants], [out])
