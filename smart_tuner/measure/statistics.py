"""Estimates and intervals for latency samples. All intervals are 95 %."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from smart_tuner.errors import UserInputError
from smart_tuner.measure.latency import LatencySummary, Statistic

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt

    from smart_tuner.measure.latency import Comparison

    Samples = npt.NDArray[np.float64]

CONFIDENCE = 0.95
LEAST_VALUES = 3
"""Below this many values there is no interval."""

RESAMPLES = 2000

_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)

_FEW_VALUES_FACTOR = {3: 1.87, 4: 1.04, 5: 0.745}
"""Half width over range, for counts too small for a distribution-free 95 % interval.

Student's t quantile times Price and Bonett's standard error of the median (Journal of Statistical
Computation and Simulation 68, 2001), which is a multiple of the range here; covers 95 to 99 %.
"""


def summarize(samples: Sequence[float] | Samples) -> LatencySummary:
    """Reduce one arm's samples to what a trial keeps.

    Args:
        samples: Milliseconds, at least one.
    """
    values = np.asarray(samples, dtype=np.float64)
    if values.size == 0:
        msg = "No latency samples to summarize."
        raise ValueError(msg)
    p05, p25, median, p75, p90, p95, p99 = (float(q) for q in np.quantile(values, _QUANTILES))
    return LatencySummary(values.size, float(values.mean()), p05, p25, median, p75, p90, p95, p99)


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """95 % interval on the median of the distribution that the values come from.

    Six values or more: interpolated order statistics (Hettmansperger and Sheather, Statistics &
    Probability Letters 4, 1986), which ask nothing of the distribution and shrug off spikes.
    Three to five: a multiple of the range, on the safe side. Fewer: infinite.

    Args:
        values: Independent finite values, in any order.
    """
    ordered = sorted(float(value) for value in values)
    count = len(ordered)
    if count < LEAST_VALUES:
        return -math.inf, math.inf
    if count in _FEW_VALUES_FACTOR:
        reach = _FEW_VALUES_FACTOR[count] * (ordered[-1] - ordered[0])
        middle = float(np.median(ordered))
        return middle - reach, middle + reach
    depth, weight = _order_statistics(count)
    low = (1 - weight) * ordered[depth - 1] + weight * ordered[depth]
    high = (1 - weight) * ordered[count - depth] + weight * ordered[count - depth - 1]
    return low, high


def _coverage(count: int, depth: int) -> float:
    """Chance that the median lies between the ``depth``-th value from below and from above."""
    return 1 - 2 * sum(math.comb(count, below) for below in range(depth)) / (1 << count)


@cache
def _order_statistics(count: int) -> tuple[int, float]:
    """The largest depth that still covers 95 %, and how far to go towards the next one."""
    depth = 1
    while _coverage(count, depth + 1) >= CONFIDENCE:
        depth += 1
    excess = _coverage(count, depth) - CONFIDENCE
    inward = excess / (_coverage(count, depth) - _coverage(count, depth + 1))
    return depth, (count - depth) * inward / (depth + (count - 2 * depth) * inward)


def median_half_width(values: Sequence[float]) -> float:
    """Half width of a symmetric 95 % interval round the sample median.

    The root mean square of the two sides of ``median_interval``. In simulations with 7 to 40
    values of normal noise, with and without spikes in one value of ten, it covers 94 to 97 %; the
    plain mean of the two sides falls below 93 %, the larger side rises to 98 %.

    Args:
        values: Independent finite values; fewer than three give infinity.
    """
    if len(values) < LEAST_VALUES:
        return math.inf
    low, high = median_interval(values)
    middle = float(np.median(values))
    return math.sqrt(((middle - low) ** 2 + (high - middle) ** 2) / 2)


def _median(values: Samples) -> float:
    return float(np.median(values))


def bootstrap_interval(
    values: Sequence[float],
    seed: int,
    statistic: Callable[[Samples], float] = _median,
) -> tuple[float, float]:
    """95 % percentile bootstrap interval (Efron, Annals of Statistics 7, 1979).

    Args:
        values: Independent finite values; fewer than three give an infinite interval.
        seed: Seed of the resampling: the same call gives the same interval.
        statistic: Figure of a resample of ``values``; the median unless given.
    """
    data = np.asarray(values, dtype=np.float64)
    if data.size < LEAST_VALUES:
        return -math.inf, math.inf
    random = np.random.default_rng(seed)
    picks = random.integers(data.size, size=(RESAMPLES, data.size))
    return _middle_share([statistic(data[pick]) for pick in picks])


def _middle_share(figures: Sequence[float]) -> tuple[float, float]:
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(figures, (tail, 1 - tail))
    return float(low), float(high)


def figure_of(samples: Samples, statistic: Statistic) -> float:
    """The statistic of some samples, in their unit."""
    quantile = statistic.quantile
    return float(samples.mean() if quantile is None else np.quantile(samples, quantile))


def pooled_log_ratio(
    baseline: Sequence[Samples], candidate: Sequence[Samples], statistic: Statistic, seed: int
) -> tuple[float, float]:
    """Estimate and half width of ln(candidate / baseline) over pooled samples.

    The half width is half of a block bootstrap interval: whole pairs of blocks are drawn, since
    the iterations of one block share what the machine did at that moment.

    Args:
        baseline: Samples of each block of the baseline, in order.
        candidate: The same of the candidate; as many blocks.
        statistic: The figure to compare.
        seed: Seed of the resampling.
    """

    def log_ratio(picks: Sequence[int] | npt.NDArray[np.int64], step: int = 1) -> float:
        figures = [
            figure_of(np.concatenate([blocks[pick][::step] for pick in picks]), statistic)
            for blocks in (candidate, baseline)
        ]
        return math.log(figures[0] / figures[1])

    count = len(baseline)
    estimate = log_ratio(range(count))
    if count < LEAST_VALUES:
        return estimate, math.inf
    # 20,000 samples an arm fix the interval's width; more would only take longer.
    step = 1 + max(sum(block.size for block in arm) for arm in (baseline, candidate)) // 20_000
    random = np.random.default_rng(seed)
    picks = random.integers(count, size=(RESAMPLES // 4, count))
    low, high = _middle_share([log_ratio(pick, step) for pick in picks])
    return estimate, (high - low) / 2


def combine(
    comparisons: Sequence[Comparison], weights: Mapping[str, float]
) -> tuple[float, float]:
    """Weighted mean log ratio over the workload's points, with its half width.

    The errors of the points are independent, so half widths add up in quadrature.

    Args:
        comparisons: One a point, at least one.
        weights: Weight by point name, > 0; they need not add up to 1.

    Raises:
        UserInputError: A point has no weight.
    """
    if not comparisons:
        msg = "No comparisons to combine."
        raise ValueError(msg)
    total = log_ratio = variance = 0.0
    for comparison in comparisons:
        weight = weights.get(comparison.point, 0.0)
        if not weight > 0:
            msg = f"Workload point {comparison.point!r} has no weight above 0."
            raise UserInputError(msg)
        total += weight
        log_ratio += weight * comparison.log_ratio
        variance += (weight * comparison.half_width) ** 2
    return log_ratio / total, math.sqrt(variance) / total
