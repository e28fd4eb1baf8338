"""Element types: ONNX's names, the names that specs use, and numpy's types for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[np.generic]

STRING = "string"
UNKNOWN = "unknown"

ONNX_NAMES = {
    "FLOAT": "float32",
    "DOUBLE": "float64",
    "FLOAT16": "float16",
    "BFLOAT16": "bfloat16",
    "FLOAT8E4M3FN": "float8_e4m3fn",
    "FLOAT8E4M3FNUZ": "float8_e4m3fnuz",
    "FLOAT8E5M2": "float8_e5m2",
    "FLOAT8E5M2FNUZ": "float8_e5m2fnuz",
    "FLOAT8E8M0": "float8_e8m0fnu",
    "FLOAT6E2M3": "float6_e2m3fn",
    "FLOAT6E3M2": "float6_e3m2fn",
    "FLOAT4E2M1": "float4_e2m1fn",
    "INT2": "int2",
    "INT4": "int4",
    "INT8": "int8",
    "INT16": "int16",
    "INT32": "int32",
    "INT64": "int64",
    "UINT2": "uint2",
    "UINT4": "uint4",
    "UINT8": "uint8",
    "UINT16": "uint16",
    "UINT32": "uint32",
    "UINT64": "uint64",
    "BOOL": "bool",
    "COMPLEX64": "complex64",
    "COMPLEX128": "complex128",
    "STRING": STRING,
}
_BITS = {
    "int2": 2,
    "uint2": 2,
    "int4": 4,
    "uint4": 4,
    "float4_e2m1fn": 4,
    "float6_e2m3fn": 6,
    "float6_e3m2fn": 6,
}
"""Types that files pack, several elements a byte; numpy keeps one element a byte."""

_EXTENDED = frozenset(
    name
    for name in ONNX_NAMES.values()
    if name != STRING and (name in _BITS or name.startswith(("bfloat", "float8")))
)


def is_extended(name: str) -> bool:
    """Whether the type exists in ml_dtypes only; numpy's own files cannot name it."""
    return name in _EXTENDED


def is_packed(name: str) -> bool:
    """Whether ONNX packs several elements of this type into one byte."""
    return name in _BITS


def numpy_type(name: str) -> np.dtype[np.generic]:
    """The numpy type for a name that a ``TensorSpec`` holds; text is ``object``.

    Raises:
        ValueError: There is no such type here.
    """
    if name == STRING:
        return np.dtype(object)
    if name in _EXTENDED:
        scalar = getattr(ml_dtypes, name, None)
        if scalar is None:
            msg = f"element type {name!r} needs a newer ml_dtypes"
            raise ValueError(msg)
        extended: np.dtype[np.generic] = np.dtype(scalar)
        return extended
    if name not in ONNX_NAMES.values():
        msg = f"no element type {name!r}"
        raise ValueError(msg)
    return np.dtype(name)


def type_name(array: Array) -> str:
    """The name a ``TensorSpec`` would use for this array's element type."""
    return STRING if array.dtype.kind in "OUS" else array.dtype.name


def stored_bytes(name: str, elements: int) -> int:
    """Bytes that ONNX's raw form takes for so many elements of a type other than text."""
    if name in _BITS:
        return -(-elements * _BITS[name] // 8)
    return elements * numpy_type(name).itemsize
