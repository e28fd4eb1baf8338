"""Losses in the words of a task: labels that differ, embeddings that turned."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from smart_tuner.errors import UserInputError
from smart_tuner.validate.elements import is_same_non_finite, numbers

if TYPE_CHECKING:
    import numpy.typing as npt

    Tensor = npt.NDArray[Any]
    Numbers = npt.NDArray[np.float64]

MOST_AXES = 2
"""Axes beside the batch that are longer than 1, in a tensor of rows: steps or tokens, and the row."""


def top1(reference: Tensor, actual: Tensor) -> float:
    """Share of rows whose largest element is another one, 0 to 1.

    Classes lie along the last axis that is longer than 1, the first axis being the batch: [N, C],
    [N, C, 1, 1] and [N, T, C] are all read as they are meant. Maps [N, C, H, W] are refused. Where several elements of the
    reference are equally large, each of them is right; where several of ``actual`` are, the first
    one counts, so that a constant agrees by chance only. NaN is the smallest of all.

    Args:
        reference: Scores; any real type.
        actual: The same shape.

    Raises:
        UserInputError: No axis beside the batch is longer than 1, or it cannot be told which of
            three or more holds the classes.
    """
    expected, given = _rows(reference, "top1"), _rows(actual, "top1")
    if expected.size == 0:
        return 0.0
    expected, given = (np.where(np.isnan(rows), -np.inf, rows) for rows in (expected, given))
    chosen = given.argmax(axis=1)
    is_right = expected[np.arange(len(expected)), chosen] == expected.max(axis=1)
    return float(np.count_nonzero(~is_right)) / len(expected)


def embedding(reference: Tensor, actual: Tensor) -> float:
    """The largest cosine distance of any embedding, 0 to 2.

    Embeddings lie along the same axis as the classes of ``top1``. Each one is compared with its
    own reference: one that is lost shows, however many others there are.

    Args:
        reference: Embeddings; any real type.
        actual: The same shape.

    Raises:
        UserInputError: As for ``top1``.
    """
    expected, given = _rows(reference, "embedding"), _rows(actual, "embedding")
    finite = np.isfinite(expected) & np.isfinite(given)
    if not np.all(finite | is_same_non_finite(expected, given)):
        return math.inf
    if expected.size == 0:
        return 0.0
    pair = (np.where(finite, rows, 0.0) for rows in (expected, given))
    return float(cosine_distances(*pair).max())


def cosine_distances(reference: Numbers, actual: Numbers) -> Numbers:
    """1 - cosine of the angle between rows, 0 to 2.

    Written as half the squared distance of the unit vectors, which is the same figure without
    cancellation: identical rows give exactly 0. No threshold on the denominator: rows of any size
    have a direction, except all zeros. Two of those agree (0), zeros against anything else do not
    (1).

    Args:
        reference: [rows, elements], finite, at least one element.
        actual: The same shape.

    Returns:
        One distance a row.
    """
    expected, given = _units(reference), _units(actual)
    is_zero = ~expected.any(axis=1), ~given.any(axis=1)
    angles = np.minimum(2.0, 0.5 * np.square(given - expected).sum(axis=1))
    distances: Numbers = np.where(
        is_zero[0] | is_zero[1], (is_zero[0] != is_zero[1]).astype(float), angles
    )
    return distances


def _units(rows: Numbers) -> Numbers:
    """Rows at length 1, zeros as they are. Scaled first: squares may overflow."""
    largest = np.abs(rows).max(axis=1, keepdims=True)
    scaled = rows / np.where(largest == 0, 1.0, largest)
    length = np.sqrt(np.square(scaled).sum(axis=1, keepdims=True))
    units: Numbers = scaled / np.where(length == 0, 1.0, length)
    return units


def _rows(tensor: Tensor, metric: str) -> Numbers:
    """One row for each vector along the axis that is judged.

    Raises:
        UserInputError: There is no such axis, or it cannot be told which one it is.
    """
    first = 1 if tensor.ndim > 1 else 0
    long = [axis for axis in range(first, tensor.ndim) if tensor.shape[axis] > 1]
    if tensor.size == 0:
        return np.zeros((0, 1))
    if tensor.dtype.kind == "c" or not 0 < len(long) <= MOST_AXES:
        what = "complex numbers" if tensor.dtype.kind == "c" else f"shape {tuple(tensor.shape)}"
        msg = (
            f"Metric {metric!r} cannot tell rows in an output of {what}: give this output "
            "another metric, as --metric OUTPUT=mae with --epsilon OUTPUT:0.01."
        )
        raise UserInputError(msg)
    moved = np.moveaxis(tensor, long[-1], -1)
    return numbers(moved).reshape(-1, tensor.shape[long[-1]])
