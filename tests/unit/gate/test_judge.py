"""How often a slow-down is missed, and how often one is seen that is not there."""

import math

import numpy as np
import pytest

from smart_tuner.gate.judge import (
    LEAST_RUNS,
    ROUNDS,
    RUN_SPREAD,
    TOLERANCE,
    Slowdown,
    against_runs,
    between_artefacts,
    over_default,
)

REPEATS = 400


def share_of_alarms(slower: float, noise: float, seed: int) -> float:
    rng = np.random.default_rng(seed)
    rounds = math.log(slower) + noise * rng.standard_normal((REPEATS, ROUNDS))
    return float(np.mean([between_artefacts(row).is_regression(TOLERANCE) for row in rounds]))


@pytest.mark.parametrize("noise", [0.005, 0.03, 0.10])
def test_no_change_rarely_alarms(noise: float) -> None:
    assert share_of_alarms(1.0, noise, seed=1) <= 0.05


@pytest.mark.parametrize("noise", [0.005, 0.03, 0.05])
def test_ten_percent_are_rarely_missed(noise: float) -> None:
    assert share_of_alarms(1.10, noise, seed=2) >= 0.95


def test_a_small_slowdown_passes_however_sure_it_is() -> None:
    assert not between_artefacts([0.02, 0.0201, 0.0199, 0.02]).is_regression(TOLERANCE)


def test_an_interval_that_is_wide_settles_nothing() -> None:
    wide = Slowdown(1.0, 0.9, 1.11, 8, 0.05)
    assert not wide.is_regression(TOLERANCE)
    assert not wide.is_settled(TOLERANCE)


def test_a_gain_that_shrank_is_seen_across_runs() -> None:
    rng = np.random.default_rng(3)
    before = [list(-0.4 + 0.01 * rng.standard_normal(8)) for _ in range(2)]
    now = list(-0.4 + math.log(1.1) + 0.01 * rng.standard_normal(8))
    assert over_default(before, now).is_regression(TOLERANCE)
    assert not over_default(before, before[0]).is_regression(TOLERANCE)


def test_runs_that_differ_widen_the_interval() -> None:
    rounds = [[0.0] * 8, [0.05] * 8, [-0.05] * 8, [0.02] * 8]
    assert len(rounds) == LEAST_RUNS
    assert over_default(rounds, [0.06] * 8).low < 1


def test_one_earlier_run_cannot_know_how_runs_differ() -> None:
    quiet = [0.0001 * number for number in range(8)]
    found = over_default([quiet], quiet)
    assert found.high / found.low > math.exp(2 * 1.96 * math.sqrt(2) * RUN_SPREAD * 0.99)


def test_few_earlier_runs_judge_no_latency() -> None:
    few = against_runs([1.0] * (LEAST_RUNS - 1), 2.0)
    assert math.isinf(few.high)
    assert not few.is_regression(TOLERANCE)
    assert few.misses_large(TOLERANCE)
    assert against_runs([1.0, 1.01, 0.99, 1.0], 1.1).is_regression(TOLERANCE)


@pytest.mark.parametrize(
    ("runs", "spread", "misses", "needed"),
    [(4, 0.01, False, 4), (6, 0.022, True, 8), (16, 0.022, False, 8), (16, 0.031, True, None)],
)
def test_runs_that_differ_too_much_tell_no_ten_percent(
    runs: int, spread: float, misses: bool, needed: int | None
) -> None:
    logs = np.resize([1.0, -1.0], runs)
    found = against_runs(np.exp(spread * logs / logs.std(ddof=1)).tolist(), 1.0)
    assert found.misses_large(TOLERANCE) is misses
    assert found.runs_that_tell(TOLERANCE) == needed


def test_a_comparison_that_says_it_tells_ten_percent_does() -> None:
    rng = np.random.default_rng(4)
    missed = told = 0
    for _ in range(REPEATS):
        before, now = np.exp(0.02 * rng.standard_normal(8)), math.exp(0.02 * rng.standard_normal())
        found = against_runs(before.tolist(), 1.1 * now)
        told += not found.misses_large(TOLERANCE)
        missed += not (found.misses_large(TOLERANCE) or found.is_regression(TOLERANCE))
    assert told > REPEATS / 2
    assert missed <= 0.05 * REPEATS


def test_identical_figures_make_no_interval_of_nonsense() -> None:
    same = over_default([[0.1, 0.1]], [0.1, 0.1])
    assert same.value == 1.0
    assert 0.96 < same.low < 1 < same.high < 1.04
