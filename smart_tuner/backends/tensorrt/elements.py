"""Element types of an engine's inputs and outputs, and how the caller's arrays become theirs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from smart_tuner.engine.running import element_bits, poison_byte
from smart_tuner.errors import RunError
from smart_tuner.model.dtypes import numpy_type

if TYPE_CHECKING:
    import numpy.typing as npt

    from smart_tuner.backends.tensorrt import api

    Array = npt.NDArray[np.generic]
    Bytes = npt.NDArray[np.uint8]

_NAMES = {
    "FLOAT": "float32",
    "HALF": "float16",
    "BF16": "bfloat16",
    "FP8": "float8_e4m3fn",
    "FP4": "float4_e2m1fn",
    "E8M0": "float8_e8m0fnu",
    "INT4": "int4",
    "INT8": "int8",
    "INT32": "int32",
    "INT64": "int64",
    "UINT8": "uint8",
    "BOOL": "bool",
}
"""Name of the SDK's ``DataType`` to the name that a ``TensorSpec`` holds."""


@dataclass(frozen=True, slots=True)
class Element:
    """How one element type is stored.

    Attributes:
        dtype: numpy's or ml_dtypes' name, as in ``TensorSpec.dtype``.
    """

    dtype: str

    @property
    def numpy(self) -> np.dtype[Any]:
        """The dtype of unpacked elements."""
        return numpy_type(self.dtype)

    @property
    def bits(self) -> int:
        """Bits an element; below 8 elements are packed, the first in the lowest bits."""
        return element_bits(self.dtype)

    @property
    def poison(self) -> int:
        """The byte that buffers are overwritten with: NaN where all ones are one."""
        return poison_byte(self.dtype)

    def pack(self, array: Array) -> Bytes:
        """Bytes of an array of this type, in C order."""
        flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        if self.bits >= 8:
            return flat
        per_byte = 8 // self.bits
        padded = np.zeros(-(-flat.size // per_byte) * per_byte, np.uint8)
        padded[: flat.size] = flat & ((1 << self.bits) - 1)
        packed = np.zeros(padded.size // per_byte, np.uint8)
        for place in range(per_byte):
            packed |= padded[place::per_byte] << (place * self.bits)
        return packed

    def unpack(self, data: Bytes, count: int) -> Array:
        """The first ``count`` elements that some bytes hold, as a new flat array."""
        if self.bits >= 8:
            whole: Array = data[: count * self.numpy.itemsize].copy().view(self.numpy)
            return whole
        per_byte = 8 // self.bits
        flat = np.empty(data.size * per_byte, np.uint8)
        for place in range(per_byte):
            flat[place::per_byte] = (data >> (place * self.bits)) & ((1 << self.bits) - 1)
        if self.dtype.startswith("int"):
            sign = np.uint8(1 << (self.bits - 1))
            flat = (flat ^ sign) - sign
        unpacked: Array = flat[:count].view(self.numpy)
        return unpacked


def element_of(name: str, dtype: api.EnumMember) -> Element:
    """Element type of an engine's input or output.

    Args:
        name: Name of the tensor, for the message.
        dtype: The SDK's type.

    Raises:
        RunError: It is none that arrays can hold here.
    """
    known = _NAMES.get(dtype.name)
    if known is None:
        msg = f"{name}: elements of type {dtype.name} are not supported"
        raise RunError(msg)
    try:
        numpy_type(known)
    except ValueError as error:
        msg = f"{name}: {error}"
        raise RunError(msg) from error
    return Element(known)


def converted(name: str, array: Array, wanted: Element) -> Array:
    """An input as the engine takes it.

    Engines may take another type than the model declares: TensorRT 8.6 computes INT64 as INT32,
    and ``io_formats`` may ask for FP16. Whole numbers must fit; the rest is rounded.

    Raises:
        RunError: The values do not fit, or the types are of different kinds.
    """
    if array.dtype == wanted.numpy:
        return array
    kinds = (_kind(array.dtype), _kind(wanted.numpy))
    if kinds == ("integer", "integer") and _fits(array, wanted.numpy):
        return array.astype(wanted.numpy)
    if kinds == ("real", "real"):
        with np.errstate(over="ignore"):
            return array.astype(wanted.numpy)
    why = f"{array.dtype} was given"
    if kinds == ("integer", "integer"):
        why += f" with values from {array.min()} to {array.max()}"
    msg = f"input {name}: the engine takes {wanted.dtype}, {why}"
    raise RunError(msg)


def restored(array: Array, declared: str | None) -> Array:
    """An output in the type that the model declares, where it differs in size only.

    Args:
        array: What the engine gave.
        declared: The model's type; None if it is not known.
    """
    if declared is None or array.dtype.name == declared:
        return array
    try:
        wanted = numpy_type(declared)
    except ValueError:
        return array
    kinds = {_kind(array.dtype), _kind(wanted)}
    return array.astype(wanted) if len(kinds) == 1 and "other" not in kinds else array


def _fits(array: Array, wanted: np.dtype[Any]) -> bool:
    if array.size == 0:
        return True
    limits = np.iinfo(wanted)
    return int(array.min()) >= limits.min and int(array.max()) <= limits.max


def _kind(dtype: np.dtype[Any]) -> str:
    if dtype.kind in "iu":
        return "integer"
    if dtype.kind == "f" or dtype.name.startswith(("bfloat", "float")):
        return "real"
    return "other"
