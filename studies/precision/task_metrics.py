"""What users of these networks lose: metrics for ``--metric task_metrics:NAME`` (folder on PYTHONPATH)."""

from __future__ import annotations

import numpy as np

BINARY = 0.3
"""From this probability on, PP-OCR's detector takes a pixel for text (its own default)."""

SURE, STILL_SURE = 0.5, 0.4
"""Probability of a box that counts, and that it must keep."""


def text_area(reference: np.ndarray, actual: np.ndarray) -> float:
    """PP-OCR's detector: 1 - intersection over union of the pixels taken for text."""
    expected, given = reference > BINARY, actual > BINARY
    union = np.count_nonzero(expected | given)
    return 1 - np.count_nonzero(expected & given) / union if union else 0.0


def characters(reference: np.ndarray, actual: np.ndarray) -> float:
    """PP-OCR's recognizer: character error rate, edits over characters of the trusted reading."""
    edits = length = 0
    for one, other in zip(reference, actual, strict=True):
        expected, given = read(one), read(other)
        edits += distance(expected, given)
        length += max(1, len(expected))
    return edits / length


def read(steps: np.ndarray) -> list[int]:
    """Classes of a line as CTC reads them: repetitions once, without blanks (class 0)."""
    best = steps.argmax(axis=-1)
    kept = [int(one) for one, before in zip(best, [0, *best[:-1]], strict=True) if one != before]
    return [one for one in kept if one]


def distance(one: list[int], other: list[int]) -> int:
    """Levenshtein's distance."""
    row = list(range(len(other) + 1))
    for place, item in enumerate(one, 1):
        before, row[0] = row[0], place
        for column, another in enumerate(other, 1):
            cost = min(row[column] + 1, row[column - 1] + 1, before + (item != another))
            before, row[column] = row[column], cost
    return row[-1]


def boxes(reference: np.ndarray, actual: np.ndarray) -> float:
    """ddddocr's detector: 1 - intersection over union of the boxes that the trusted output is sure of.

    The mean over the boxes with a probability of 0.5 or more, before boxes that overlap are dropped. A
    box whose probability falls below 0.4 counts as lost.
    """
    expected, given = decoded(reference), decoded(actual)
    sure = expected[:, 4] >= SURE
    if not sure.any():
        return float(np.mean(given[:, 4] >= SURE))
    overlaps = np.where(given[sure, 4] >= STILL_SURE, overlap(expected[sure], given[sure]), 0.0)
    return float(1 - overlaps.mean())


def decoded(output: np.ndarray) -> np.ndarray:
    """[boxes, 5]: left, top, right, bottom in pixels, and probability; as YOLOX defines them."""
    grids = [(stride, *place) for stride in (8, 16, 32) for place in np.ndindex(416 // stride, 416 // stride)]
    stride, down, right = np.array(grids, np.float64).T
    values = output[0].astype(np.float64)
    centre_x, centre_y = (values[:, 0] + right) * stride, (values[:, 1] + down) * stride
    half_width, half_height = np.exp(values[:, 2]) * stride / 2, np.exp(values[:, 3]) * stride / 2
    sides = (centre_x - half_width, centre_y - half_height, centre_x + half_width, centre_y + half_height)
    return np.stack([*sides, values[:, 4] * values[:, 5]], axis=1)


def overlap(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Intersection over union, box by box."""
    low, high = np.maximum(one[:, :2], other[:, :2]), np.minimum(one[:, 2:4], other[:, 2:4])
    common = np.prod(np.clip(high - low, 0, None), axis=1)
    areas = [np.prod(item[:, 2:4] - item[:, :2], axis=1) for item in (one, other)]
    return common / (areas[0] + areas[1] - common)
