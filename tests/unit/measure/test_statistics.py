from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest

from smart_tuner.errors import UserInputError
from smart_tuner.measure.latency import Comparison, Statistic
from smart_tuner.measure.statistics import (
    bootstrap_interval,
    combine,
    median_half_width,
    median_interval,
    pooled_log_ratio,
    summarize,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    Noise = Callable[[np.random.Generator, int], npt.NDArray[np.float64]]

CASES = 2000


def spiky(random: np.random.Generator, count: int) -> npt.NDArray[np.float64]:
    """Normal noise; one value in ten is a spike, in either arm."""
    hit = random.random(count) < 0.1
    sign = np.where(random.random(count) < 0.5, -1.0, 1.0)
    return random.standard_normal(count) + hit * sign * random.exponential(10.0, count)


def normal(random: np.random.Generator, count: int) -> npt.NDArray[np.float64]:
    return random.standard_normal(count)


@pytest.mark.parametrize("noise", [normal, spiky])
@pytest.mark.parametrize("count", [7, 8, 12, 20, 40])
def test_median_interval_covers_95_percent(noise: Noise, count: int) -> None:
    random = np.random.default_rng(100 + count)
    covered = [0, 0]
    for _ in range(CASES):
        values = noise(random, count).tolist()
        low, high = median_interval(values)
        covered[0] += low <= 0 <= high
        covered[1] += abs(float(np.median(values))) <= median_half_width(values)
    assert 0.93 <= covered[0] / CASES <= 0.97
    assert 0.93 <= covered[1] / CASES <= 0.975


@pytest.mark.parametrize("count", [3, 4, 5])
def test_few_values_give_a_cautious_interval(count: int) -> None:
    random = np.random.default_rng(count)
    covered = 0
    for _ in range(CASES):
        values = normal(random, count).tolist()
        low, high = median_interval(values)
        covered += low <= 0 <= high
        assert median_half_width(values) == pytest.approx((high - low) / 2)
    assert covered / CASES >= 0.95


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 2.0]])
def test_no_interval_below_three_values(values: list[float]) -> None:
    assert median_interval(values) == (-math.inf, math.inf)
    assert median_half_width(values) == math.inf
    assert bootstrap_interval(values, 0) == (-math.inf, math.inf)


def test_interval_contains_the_median_and_ignores_the_order() -> None:
    values = [0.3, -0.1, 0.2, 5.0, 0.0, 0.1, 0.4, 0.15]
    low, high = median_interval(values)
    assert low < float(np.median(values)) < high < 5.0
    assert median_interval(sorted(values)) == (low, high)


def test_equal_values_have_no_width() -> None:
    assert median_interval([0.5] * 9) == (0.5, 0.5)
    assert median_half_width([0.5] * 9) == 0.0


def test_many_values_do_not_overflow() -> None:
    low, high = median_interval(np.linspace(-1, 1, 701).tolist())
    assert -0.15 < low < 0 < high < 0.15


def test_summary_keeps_the_quantiles_and_their_order() -> None:
    summary = summarize([float(value) for value in range(101)])
    assert summary.count == 101
    assert summary.mean_ms == 50
    assert (summary.p05_ms, summary.p25_ms, summary.median_ms) == (5, 25, 50)
    assert (summary.p75_ms, summary.p90_ms, summary.p95_ms, summary.p99_ms) == (75, 90, 95, 99)


def test_summary_of_one_microsecond_is_not_zero() -> None:
    assert summarize([0.001]).median_ms == 0.001
    with pytest.raises(ValueError, match="No latency samples"):
        summarize([])


def test_bootstrap_is_seeded_and_takes_any_statistic() -> None:
    values = np.random.default_rng(1).standard_normal(30).tolist()
    assert bootstrap_interval(values, 7) == bootstrap_interval(values, 7)
    low, high = bootstrap_interval(values, 7, lambda sample: float(sample.mean()))
    assert (low, high) != bootstrap_interval(values, 8, lambda sample: float(sample.mean()))
    assert low < float(np.mean(values)) < high
    assert high - low == pytest.approx(2 * 1.96 / math.sqrt(30), rel=0.4)


def test_bootstrap_leaves_the_global_generator_alone() -> None:
    before = str(np.random.get_state())
    bootstrap_interval([1.0, 2.0, 3.0, 4.0], 1)
    assert str(np.random.get_state()) == before


def comparison(point: str, log_ratio: float, half_width: float) -> Comparison:
    arm = summarize([1.0])
    return Comparison(point, (log_ratio,), log_ratio, half_width, arm, arm, 0.0)


def test_points_combine_by_weight_with_independent_errors() -> None:
    points = [comparison("a", -0.1, 0.03), comparison("b", 0.2, 0.04)]
    log_ratio, half_width = combine(points, {"b": 1.0, "a": 1.0})
    assert log_ratio == pytest.approx(0.05)
    assert half_width == pytest.approx(0.025)
    assert combine(points, {"a": 30, "b": 10})[0] == pytest.approx(-0.025)
    assert combine(points[:1], {"a": 0.2}) == pytest.approx((-0.1, 0.03))


def test_an_unmeasured_point_leaves_the_combination_without_interval() -> None:
    points = [comparison("a", -0.1, 0.03), comparison("b", 0.2, math.inf)]
    assert combine(points, {"a": 1, "b": 1})[1] == math.inf


@pytest.mark.parametrize("weights", [{}, {"b": 1.0}, {"a": 0.0}, {"a": -1.0}, {"a": math.nan}])
def test_a_point_without_weight_is_named(weights: dict[str, float]) -> None:
    with pytest.raises(UserInputError, match="'a'"):
        combine([comparison("a", 0.0, 0.1)], weights)
    with pytest.raises(ValueError, match="No comparisons"):
        combine([], weights)


@pytest.mark.parametrize("statistic", [Statistic.MEAN, Statistic.P90, Statistic.P99])
def test_pooled_ratio_finds_the_ratio_with_an_interval(statistic: Statistic) -> None:
    random = np.random.default_rng(3)
    baseline = [10 + random.exponential(1.0, 300) for _ in range(12)]
    candidate = [0.9 * (10 + random.exponential(1.0, 300)) for _ in range(12)]
    log_ratio, half_width = pooled_log_ratio(baseline, candidate, statistic, 0)
    assert 0 < half_width < 0.05
    assert abs(log_ratio - math.log(0.9)) < 2 * half_width
    assert pooled_log_ratio(baseline, candidate, statistic, 0) == (log_ratio, half_width)
    assert pooled_log_ratio(baseline[:2], candidate[:2], statistic, 0)[1] == math.inf
