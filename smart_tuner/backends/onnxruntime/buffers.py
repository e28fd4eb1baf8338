"""Tensor memory that the runtime reads and writes in place, seen from numpy byte by byte.

The runtime makes every tensor itself, so that types numpy does not have (bfloat16, float8, packed
4-bit and 2-bit integers) need no special way in or out: their bytes are copied.
"""

from __future__ import annotations

import ctypes
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto

from smart_tuner.backends.onnxruntime.runtime import import_runtime
from smart_tuner.engine.running import element_bits, poison_byte
from smart_tuner.errors import RunError
from smart_tuner.model.dtypes import ONNX_NAMES, STRING, numpy_type, stored_bytes

if TYPE_CHECKING:
    import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class ElementType:
    """How one element type of ONNX is stored.

    Attributes:
        dtype: numpy's or ml_dtypes' name, as in ``TensorSpec.dtype``.
        code: Number in ONNX's ``TensorProto.DataType``.
    """

    dtype: str
    code: int

    @property
    def numpy(self) -> np.dtype[Any]:
        """The dtype of unpacked elements."""
        return numpy_type(self.dtype)

    @property
    def is_text(self) -> bool:
        """Whether the elements are text, which has no place in a buffer."""
        return self.dtype == STRING

    @property
    def bits(self) -> int:
        """Bits an element; below 8 elements are packed, the first in the lowest bits."""
        return element_bits(self.dtype)

    @property
    def poison(self) -> int:
        """The byte that buffers are overwritten with: NaN where all ones are one."""
        return poison_byte(self.dtype)


def element_type(name: str, text: str) -> ElementType:
    """Element type of a session's input or output.

    Args:
        name: Name of the tensor, for the message.
        text: The runtime's type text, e.g. ``tensor(float)``.

    Raises:
        RunError: It is no dense tensor, or of a type that is not supported.
    """
    found = re.fullmatch(r"tensor\((\w+)\)", text)
    label = found[1].upper() if found is not None else ""
    code: int | None = getattr(TensorProto, label, None) if label in ONNX_NAMES else None
    # Types of 6 bits lie across bytes; the runtime has none.
    if code is None or "FLOAT6" in label:
        msg = f"{name}: type {text} is not supported, only dense tensors are"
        raise RunError(msg)
    return ElementType(ONNX_NAMES[label], code)


@dataclass(frozen=True, slots=True)
class Buffer:
    """One tensor in the runtime's memory on the host.

    Attributes:
        value: The runtime's tensor, which owns the memory.
        element: Its element type, never string.
        shape: Its shape.
        data: Its bytes, writable in place.
    """

    value: Any
    element: ElementType
    shape: tuple[int, ...]
    data: npt.NDArray[np.uint8]

    @classmethod
    def allocate(cls, element: ElementType, shape: tuple[int, ...]) -> Buffer:
        """Allocate a tensor; its content is undefined."""
        value = import_runtime().OrtValue.ortvalue_from_shape_and_type(list(shape), element.code)
        return cls.view(value, element)

    @classmethod
    def view(cls, value: Any, element: ElementType) -> Buffer:
        """Look into a tensor that the runtime made."""
        shape = tuple(int(size) for size in value.shape())
        count = stored_bytes(element.dtype, math.prod(shape))
        if count == 0:
            return cls(value, element, shape, np.empty(0, np.uint8))
        memory = (ctypes.c_uint8 * count).from_address(value.data_ptr())
        return cls(value, element, shape, np.ctypeslib.as_array(memory))

    def fill(self, array: npt.NDArray[np.generic]) -> None:
        """Copy an array of this type and shape into the tensor."""
        flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        self.data[:] = flat if self.element.bits >= 8 else _pack(flat, self.element.bits)

    def poison(self) -> None:
        """Overwrite the content with NaN, or with a pattern where there is no NaN."""
        self.data[:] = self.element.poison

    def read(self) -> npt.NDArray[np.generic]:
        """Return a copy of the content."""
        count = math.prod(self.shape)
        flat = self.data.copy()
        if self.element.bits < 8:
            flat = _unpack(flat, self.element, count)
        result: npt.NDArray[np.generic] = flat.view(self.element.numpy).reshape(self.shape)
        return result


def _pack(flat: npt.NDArray[np.uint8], bits: int) -> npt.NDArray[np.uint8]:
    """Pack elements of one byte each, the first into the lowest bits."""
    per_byte = 8 // bits
    padded = np.zeros(math.ceil(len(flat) / per_byte) * per_byte, np.uint8)
    padded[: len(flat)] = flat & ((1 << bits) - 1)
    packed = np.zeros(len(padded) // per_byte, np.uint8)
    for position in range(per_byte):
        packed |= padded[position::per_byte] << (position * bits)
    return packed


def _unpack(
    packed: npt.NDArray[np.uint8], element: ElementType, count: int
) -> npt.NDArray[np.uint8]:
    """Unpack into one byte an element, the sign extended where the type has one."""
    bits, per_byte = element.bits, 8 // element.bits
    flat = np.empty(len(packed) * per_byte, np.uint8)
    for position in range(per_byte):
        flat[position::per_byte] = (packed >> (position * bits)) & ((1 << bits) - 1)
    if element.dtype.startswith("int"):
        sign = np.uint8(1 << (bits - 1))
        flat = (flat ^ sign) - sign
    return flat[:count]
