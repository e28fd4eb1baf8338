from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from smart_tuner.errors import UserInputError
from smart_tuner.measure.stop_rule import StopRule
from smart_tuner.route.build_route import BuildRoute
from smart_tuner.trial.trial import TrialOutcome
from smart_tuner.validate.constraint import AccuracyConstraint
from smart_tuner.validate.pairs import over_pairs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from smart_tuner.trial.evaluate import Evaluator

    MakeEvaluator = Callable[..., Evaluator]

METRIC = """
import os, pathlib
def relative(reference, actual):
    (pathlib.Path(__file__).parent / "pid").write_text(str(os.getpid()))
    return float(abs(actual - reference).max() / reference.max())
def chooses(reference, actual):
    raise ValueError("boxes\\nand scores differ")
"""
RULE = StopRule(min_pairs=2, max_pairs=2)


@pytest.fixture
def own_metric(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "metric_of_a_user.py").write_text(METRIC)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path / "pid"


def offset(size: str) -> BuildRoute:
    return BuildRoute((("offset", size),))


def test_a_users_metric_is_imported_by_the_child_alone(
    make_evaluator: MakeEvaluator, own_metric: Path, tmp_path: Path
) -> None:
    constraint = AccuracyConstraint("metric_of_a_user:relative", 0.1)
    with make_evaluator(constraint=constraint) as evaluator:
        trial = evaluator.evaluate(offset("1"), tmp_path / "trial", RULE)
    assert trial.outcome is TrialOutcome.INFEASIBLE
    # The smallest values suffer most: y = 2 x on x = 1 ... 4.
    assert "point 'small', pair 'a'" in trial.message
    assert "mean over 2 pairs" in trial.message
    assert "metric_of_a_user" not in sys.modules
    assert int(own_metric.read_text()) != os.getpid()


@pytest.mark.usefixtures("own_metric")
def test_a_users_metric_that_raises_stops_with_one_line(make_evaluator: MakeEvaluator) -> None:
    constraint = AccuracyConstraint("metric_of_a_user:chooses", 0.1)
    with (
        make_evaluator(constraint=constraint) as evaluator,
        pytest.raises(UserInputError, match=r"Output 'y'.*chooses") as caught,
    ):
        evaluator.check_baseline(RULE)
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("own_metric")
def test_the_mean_over_pairs_is_held_to_epsilon_and_each_pair_timed_as_it_is(
    make_evaluator: MakeEvaluator, tmp_path: Path
) -> None:
    losses = {"a": 1 / 8, "b": 1 / 10}
    epsilon = 1.001 * sum(losses.values()) / 2
    constraint = AccuracyConstraint("metric_of_a_user:relative", epsilon, over_pairs="mean")
    with make_evaluator(constraint=constraint) as evaluator:
        trial = evaluator.evaluate(offset("1"), tmp_path / "trial", RULE)
        assert trial.outcome is TrialOutcome.FEASIBLE
        held = evaluator.held_out_losses(trial, tmp_path / "held.log")
    small = over_pairs(trial.losses)[0]
    assert (small.worst, small.worst_pair, small.over) == (losses["a"], "a", "mean")
    assert small.mean == pytest.approx(epsilon, rel=0.01)
    assert [loss.pair for loss in held] == ["held"]
