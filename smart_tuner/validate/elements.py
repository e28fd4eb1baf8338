"""Two tensors side by side, for every element type: what can be compared, and what differs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Tensor = npt.NDArray[Any]
    Numbers = npt.NDArray[np.float64]

_TEXT_KINDS = "OSUT"
_ID_NAMES = ("bool", "int", "uint")

ROUNDING = 1e-3
"""Share of the largest magnitude that a constant may vary by and still be one."""


def holds_text(tensor: Tensor) -> bool:
    """Whether the elements are text: numpy strings, bytes or Python objects."""
    return tensor.dtype.kind in _TEXT_KINDS


def holds_ids(tensor: Tensor) -> bool:
    """Whether the elements are labels: integers of any width, booleans, text."""
    return holds_text(tensor) or tensor.dtype.name.startswith(_ID_NAMES)


def why_incomparable(reference: Tensor, actual: Tensor) -> str:
    """Say how shape or type differ; empty when they do not. Byte order is no difference."""
    if reference.shape != actual.shape:
        return f"shape {actual.shape} where the reference has {reference.shape}"
    if holds_text(reference) and holds_text(actual):
        return ""
    if reference.dtype.newbyteorder("=") != actual.dtype.newbyteorder("="):
        return f"type {actual.dtype} where the reference has {reference.dtype}"
    return ""


def numbers(tensor: Tensor) -> Numbers:
    """Elements as a flat float64 array; a complex element counts as two real ones."""
    flat = np.ascontiguousarray(tensor).reshape(-1)
    with np.errstate(all="ignore"):
        if flat.dtype.kind == "c":
            return flat.astype(np.complex128).view(np.float64)
        return flat.astype(np.float64)


def is_same_non_finite(reference: Numbers, actual: Numbers) -> npt.NDArray[np.bool_]:
    """Where both are NaN, or both the same infinity."""
    both_nan = np.isnan(reference) & np.isnan(actual)
    same: npt.NDArray[np.bool_] = both_nan | (np.isinf(reference) & (reference == actual))
    return same


def count_wrong_non_finite(reference: Tensor, actual: Tensor) -> int:
    """How many elements are not finite on one side and something else on the other.

    Args:
        reference: Numbers, no text.
        actual: The same shape.
    """
    expected, given = numbers(reference), numbers(actual)
    odd = ~(np.isfinite(expected) & np.isfinite(given))
    return int(np.count_nonzero(odd & ~is_same_non_finite(expected, given)))


def is_constant(tensor: Tensor) -> bool:
    """Whether all elements are the same: nothing was computed, or nothing is left of it."""
    if holds_text(tensor):
        return len(set(_comparable_ids(tensor).tolist())) == 1
    return tensor.size > 0 and not varies(tensor, 0.0)


def varies(tensor: Tensor, rounding: float = ROUNDING) -> bool:
    """Whether finite elements differ by more than ``rounding`` of the largest magnitude."""
    if holds_text(tensor):
        return len(set(_comparable_ids(tensor).tolist())) > 1
    finite = numbers(tensor)
    finite = finite[np.isfinite(finite)]
    if finite.size == 0:
        return False
    spread = float(finite.max()) - float(finite.min())
    return spread > rounding * float(np.abs(finite).max())


def differences(reference: Tensor, actual: Tensor) -> Numbers:
    """|actual - reference| as a flat float64 array.

    Integers are subtracted exactly before they are rounded to float64: 2**53 + 1 and 2**53
    differ by 1, and nothing wraps.
    """
    if reference.dtype != actual.dtype or not holds_ids(reference):
        with np.errstate(all="ignore"):
            return np.abs(numbers(actual) - numbers(reference))
    wide = np.uint64 if reference.dtype.name.startswith("uint") else np.int64
    expected, given = (tensor.reshape(-1).astype(wide) for tensor in (reference, actual))
    # Modulo 2**64 the difference of the larger and the smaller is their exact distance.
    larger, smaller = np.maximum(expected, given), np.minimum(expected, given)
    return (larger.astype(np.uint64) - smaller.astype(np.uint64)).astype(np.float64)


def share_of_different_ids(reference: Tensor, actual: Tensor) -> float:
    """Share of elements that are not equal, 0 to 1; 0 for empty tensors."""
    if reference.size == 0:
        return 0.0
    expected, given = (_comparable_ids(tensor) for tensor in (reference, actual))
    return float(np.count_nonzero(expected != given)) / reference.size


def _comparable_ids(tensor: Tensor) -> Tensor:
    flat = tensor.reshape(-1)
    if not holds_text(tensor):
        # int4 and its kin leave the upper half of their byte undefined: compare values.
        return flat.astype(np.int8) if flat.dtype.kind == "V" else flat
    texts = np.empty(flat.size, dtype=object)
    texts[:] = [_as_text(element) for element in flat.tolist()]
    return texts


def _as_text(element: object) -> str:
    if isinstance(element, bytes):
        return element.decode("utf-8", "surrogateescape")
    return str(element)


def share_of_different_bytes(reference: Tensor, actual: Tensor) -> float:
    """Share of elements whose bit patterns differ, 0 to 1; 0 for empty tensors.

    -0.0 is not 0.0, and NaNs are equal when their payloads are. Ids are compared by value.

    Args:
        reference: Any element type.
        actual: The same shape and type.
    """
    if holds_ids(reference) or reference.size == 0:
        return share_of_different_ids(reference, actual)
    expected, given = (_bit_patterns(tensor) for tensor in (reference, actual))
    return float(np.count_nonzero((expected != given).any(axis=1))) / reference.size


def _bit_patterns(tensor: Tensor) -> npt.NDArray[np.uint8]:
    native = tensor.astype(tensor.dtype.newbyteorder("="), copy=False)
    flat = np.ascontiguousarray(native).reshape(-1)
    return flat.view(np.uint8).reshape(flat.size, flat.dtype.itemsize)
