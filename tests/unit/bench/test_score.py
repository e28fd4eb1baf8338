from __future__ import annotations

import math

import pytest

from smart_tuner.bench.score import (
    POOLED,
    ask_seconds,
    checkpoints,
    curves,
    fraction,
    fraction_at_cost,
    score,
    trials_to_goal,
)
from tests.unit.bench.making import HALF, run


def test_the_gain_fraction_is_of_latency_and_may_be_negative() -> None:
    assert [fraction(run(), n) for n in (1, 2, 3)] == pytest.approx([0, 0.5, 1])
    assert fraction(run(shares=(-0.2,)), 1) == pytest.approx(-0.2)


def test_a_run_that_ended_early_keeps_what_it_had() -> None:
    assert fraction(run(trials=100), 100) == pytest.approx(1)


def test_at_equal_cost_failures_that_were_cheap_leave_more_trials() -> None:
    cheap, dear = run(costs=(1, 1.5, 2)), run(costs=(1, 5, 9))
    assert fraction_at_cost(cheap, 2) == pytest.approx(1)
    assert fraction_at_cost(dear, 2) == pytest.approx(0)
    assert fraction_at_cost(dear, 0.5) == 0


def test_the_goal_is_nine_tenths() -> None:
    assert trials_to_goal(run(shares=(0, 0.89, 0.91, 1))) == 3
    assert trials_to_goal(run(shares=(0, 0.5))) is None


def test_ask_seconds_are_told_apart_by_when() -> None:
    assert ask_seconds(run()) == (0.5, 0.5)
    assert ask_seconds(run(shares=(0.5,))) == (0.5, 0.5)


def test_scores_are_means_by_sampler_pooled_and_by_generator() -> None:
    half = run(shares=(0, 0.5, 0.5), generator="lossy")
    assert score([half])[0].log_gain[3] == pytest.approx(math.log(0.75) / HALF)
    runs = [run(), run(shares=(0, 0, 0), generator="dense"), run("two", generator="dense")]
    by_key = {(s.group, s.sampler): s for s in score(runs)}
    assert by_key[POOLED, "one"].gain[3] == pytest.approx(0.5)
    assert by_key[POOLED, "one"].workloads == 2
    assert by_key["dense", "one"].gain[3] == 0
    assert by_key["dense", "one"].reached == 0
    assert by_key["sparse", "one"].area == pytest.approx(0.5)
    assert by_key["sparse", "one"].infeasible == pytest.approx(1 / 3)
    assert by_key["sparse", "one"].repeated == pytest.approx(1 / 3)
    assert next(iter(by_key))[0] == POOLED


def test_the_median_counts_runs_that_never_got_there() -> None:
    shares = ((0, 1, 1), (0, 0, 1), (0, 0, 0))
    runs = [run(shares=each, seed=seed) for seed, each in enumerate(shares)]
    assert score(runs)[-1].trials_to_goal == 3
    runs += [run(shares=(0, 0, 0), seed=seed) for seed in (7, 8)]
    assert score(runs)[-1].trials_to_goal is None


def test_null_workloads_count_winners_and_nothing_else() -> None:
    runs = [run(generator="null", optimum=0.0, seed=n, is_winner=n == 0) for n in range(4)]
    (only,) = score(runs)
    assert (only.group, only.winners, only.gain[3]) == ("null", 1, 0)
    assert curves(runs) == ()


def test_checkpoints_end_with_the_last_trial() -> None:
    assert checkpoints(240) == (30, 60, 120, 240)
    assert checkpoints(100) == (30, 60, 100)
    assert checkpoints(7) == (7,)


def test_a_curve_has_a_figure_for_each_trial() -> None:
    pooled, single = curves([run(), run(shares=(0, 0, 0), seed=1)])
    assert (pooled.group, single.group) == (POOLED, "sparse")
    assert pooled.gain == (0, 0.25, 0.5)
