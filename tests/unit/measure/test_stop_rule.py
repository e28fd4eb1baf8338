from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from smart_tuner.errors import UserInputError
from smart_tuner.measure.statistics import median_half_width
from smart_tuner.measure.stop_rule import StopRule

QUIET = [0.0, 1e-4, -1e-4, 2e-4, -2e-4, 1e-4, -1e-4, 0.0]


def test_narrow_interval_stops_after_the_least_pairs() -> None:
    rule = StopRule()
    assert not rule.is_satisfied([], 0.0)
    assert not rule.is_satisfied(QUIET[:6], 0.0)
    assert not rule.is_satisfied(QUIET[:7], 0.0), "half an ABBA group"
    assert rule.is_satisfied(QUIET, 0.0)


def test_wide_interval_goes_on_to_the_cap() -> None:
    rule = StopRule()
    noisy = [0.1 * (-1) ** place for place in range(40)]
    assert not rule.is_satisfied(noisy[:38], 0.0)
    assert rule.is_satisfied(noisy, 0.0)


def test_time_stops_after_two_groups_at_the_earliest() -> None:
    rule = StopRule(max_seconds=1.0)
    noisy = [0.1, -0.1, 0.2, -0.2, 0.1, -0.1]
    assert not rule.is_satisfied(noisy[:2], 100.0)
    assert not rule.is_satisfied(noisy[:4], 0.9)
    assert rule.is_satisfied(noisy[:4], 1.0)


def test_a_hopeless_candidate_is_given_up_early() -> None:
    slow = [0.50, 0.52, 0.51, 0.49]
    assert StopRule().is_satisfied(slow, 0.0)
    assert not replace(StopRule(), futile_loss=None).is_satisfied(slow, 0.0)
    assert not StopRule().is_satisfied([-value for value in slow], 0.0)
    assert not StopRule().is_satisfied([0.5, -0.5, 0.6, -0.1], 0.0), "slow or only noisy?"
    assert not StopRule().is_satisfied([0.02] * 4, 0.0), "slower, but not by 3 %"
    assert not StopRule().is_futile([0.5, 0.5])


@pytest.mark.parametrize("pairs", [1, 7, 15, 16])
def test_fixed_measures_exactly_so_many_pairs(pairs: int) -> None:
    rule = StopRule.fixed(pairs)
    assert [rule.is_satisfied([0.9] * count, 1e9) for count in range(pairs + 1)] == [
        *[False] * pairs,
        True,
    ]


def test_interval_after_an_early_stop_still_covers_nine_in_ten() -> None:
    random = np.random.default_rng(11)
    rule, covered, cases = StopRule(), 0, 600
    for _ in range(cases):
        values: list[float] = []
        while not rule.is_satisfied(values, 0.0):
            values.append(0.008 * float(random.standard_normal()))
        covered += abs(float(np.median(values))) <= median_half_width(values)
    assert covered / cases >= 0.88


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("min_pairs", 0),
        ("min_pairs", 2.5),
        ("min_pairs", True),
        ("max_pairs", 6),
        ("min_iterations", 0),
        ("dropped", -1),
        ("target_half_width", -0.1),
        ("target_half_width", math.nan),
        ("block_seconds", 0.0),
        ("block_seconds", math.inf),
        ("max_seconds", 0.0),
        ("max_seconds", math.nan),
        ("warm_up_seconds", -1.0),
        ("futile_loss", 0.0),
    ],
)
def test_a_wrong_value_is_named(name: str, value: object) -> None:
    values: dict[str, Any] = {name: value}
    with pytest.raises(UserInputError, match=name):
        StopRule(**values)
