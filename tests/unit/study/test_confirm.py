import math
from collections.abc import Callable
from dataclasses import replace

import pytest

from smart_tuner.route.build_route import BuildRoute
from smart_tuner.storages.history import TrialRecord
from smart_tuner.study.progress.budget import Budget
from smart_tuner.study.progress.events import PhaseStarted
from smart_tuner.study.proof.confirm import Confirmed, confirm, short_of_confirming
from smart_tuner.study.proof.finalists import REPORT_ROUNDS
from smart_tuner.study.proof.fresh import FreshBuilder
from smart_tuner.study.proof.gain import Gain
from smart_tuner.trial.trial import TrialOutcome
from tests.unit.study.pretend import Answer, PretendEvaluator, Recorder, route

MakeBuilder = Callable[..., tuple[FreshBuilder, PretendEvaluator]]

SHORT = 70.0
"""Seconds of budget in which long blocks have no room."""


def record(*names: str, ms: float = 0.8) -> TrialRecord:
    return TrialRecord(len(names), route(*names), TrialOutcome.FEASIBLE, ms, half_width=0.001)


def test_a_winner_is_cut_down_measured_anew_and_reported(make_builder: MakeBuilder) -> None:
    builder, _ = make_builder(
        lambda tried: -0.2 if "good" in tried.values else 0.0, budget=Budget(SHORT)
    )
    confirmed = confirm((record("good", "idle"),), builder, 1.0, 1.01)
    assert confirmed
    assert confirmed.route == route("good")
    assert confirmed.route_gain.samples == REPORT_ROUNDS
    assert confirmed.route_gain.value == pytest.approx(math.exp(0.2))
    assert confirmed.engine_gain.value == pytest.approx(math.exp(0.2))
    assert confirmed.sustained_gain is None
    assert not confirmed.indicative
    assert confirmed.failures == 0
    assert confirmed.ships(1.01, 0.05)
    assert isinstance(builder.listener, Recorder)
    phases = [event.phase for event in builder.listener.of(PhaseStarted)]
    assert phases == ["finalists", "reset", "report"]


def test_the_engine_that_ships_is_one_of_those_that_were_reported(
    make_builder: MakeBuilder,
) -> None:
    builder, _ = make_builder(lambda _: -0.2, budget=Budget(SHORT))
    confirmed = confirm((record("good"),), builder, 1.0, 1.01)
    assert confirmed
    assert confirmed.shipped.engine.path.parent.parent.name.startswith("report-")
    assert confirmed.shipped.engine.path.is_file()


def test_slow_builds_are_not_begun_when_no_verdict_can_come_of_them(
    make_builder: MakeBuilder,
) -> None:
    """One rebuild and two reports of 50 s each do not fit into 100 s."""
    builder, _ = make_builder(lambda _: -0.2, budget=Budget(100.0))
    builder.expected_seconds = 50.0
    assert short_of_confirming((record("a"),), builder, 1.0, 1.01) == pytest.approx(50, abs=1.0)
    assert short_of_confirming((record("a", ms=1.0),), builder, 1.0, 1.01) == 0, "nothing to prove"
    builder.expected_seconds = 30.0
    assert short_of_confirming((record("a"),), builder, 1.0, 1.01) == 0


def test_nothing_worth_confirming_builds_nothing(make_builder: MakeBuilder) -> None:
    builder, evaluator = make_builder(lambda _: -0.2)
    assert confirm((), builder, 1.0, 1.01) is None
    assert confirm((record("a", ms=1.0),), builder, 1.0, 1.01) is None
    assert evaluator.tried == []


def test_a_lucky_trial_is_unmasked_at_once(make_builder: MakeBuilder) -> None:
    builder, evaluator = make_builder(lambda _: 0.0)
    assert confirm((record("a"),), builder, 1.0, 1.01) is None
    assert len(evaluator.tried) == 1


def test_nothing_that_still_works_is_no_winner(make_builder: MakeBuilder) -> None:
    builder, _ = make_builder(lambda _: TrialOutcome.BUILD_FAILED)
    assert confirm((record("a"),), builder, 1.0, 1.01) is None
    answers = iter([-0.2, *[TrialOutcome.RUN_FAILED] * 5])
    builder, _ = make_builder(lambda _: next(answers), budget=Budget(SHORT))
    assert confirm((record("a"),), builder, 1.0, 1.01) is None


def test_a_winner_that_fails_now_and_then_does_not_ship(make_builder: MakeBuilder) -> None:
    answers = iter([-0.2, -0.2, TrialOutcome.RUN_FAILED, -0.2, -0.2, -0.2])
    builder, _ = make_builder(lambda _: next(answers), budget=Budget(SHORT))
    confirmed = confirm((record("a"),), builder, 1.0, 1.01)
    assert confirmed
    assert confirmed.failures == 1
    assert confirmed.indicative
    assert not confirmed.ships(1.01, 0.05)


def test_an_engine_that_is_the_baselines_own_does_not_ship(make_builder: MakeBuilder) -> None:
    builder, _ = make_builder(lambda _: -0.2, budget=Budget(SHORT))
    confirmed = confirm((record("a"),), builder, 1.0, 1.0)
    assert confirmed
    assert confirmed.ships(1.0, 0.05)
    same = replace(confirmed.shipped, trial=replace(confirmed.shipped.trial, unchanged=True))
    confirmed = replace(confirmed, shipped=same, route_gain=Gain(1.0, 1.0, 1.0, REPORT_ROUNDS))
    assert not confirmed.ships(1.0, 0.05)


def test_few_rounds_are_indicative(make_builder: MakeBuilder) -> None:
    builder, _ = make_builder(lambda _: -0.2, budget=Budget(2.0))
    builder.seconds.append(1.0)
    confirmed = confirm((record("a"),), builder, 1.0, 1.01)
    assert confirmed
    assert confirmed.indicative
    assert confirmed.route_gain.samples < REPORT_ROUNDS


def test_long_blocks_follow_when_there_is_time(make_builder: MakeBuilder) -> None:
    builder, _ = make_builder(lambda _: -0.2, budget=Budget(1000.0))
    confirmed = confirm((record("a"),), builder, 1.0, 1.01)
    assert confirmed
    assert confirmed.sustained_gain
    assert confirmed.sustained_gain.value == pytest.approx(math.exp(0.2))
    assert confirmed.sustained_gain.samples == 4


def test_long_blocks_that_contradict_decide(make_builder: MakeBuilder) -> None:
    answers = iter([-0.2] * 6 + [0.05])
    builder, _ = make_builder(lambda _: next(answers), budget=Budget(1000.0))
    confirmed = confirm((record("a"),), builder, 1.0, 1.01)
    assert confirmed
    assert confirmed.deciding_gain is confirmed.sustained_gain
    assert not confirmed.ships(1.01, 0.05)


def test_a_route_that_fails_under_sustained_load_does_not_ship(
    make_builder: MakeBuilder,
) -> None:
    answers = iter([*[-0.2] * 6, TrialOutcome.RUN_FAILED])
    builder, _ = make_builder(lambda _: next(answers), budget=Budget(1000.0))
    confirmed = confirm((record("a"),), builder, 1.0, 1.01)
    assert confirmed
    assert confirmed.failures == 1
    assert not confirmed.ships(1.01, 0.05)


def test_the_point_that_gains_least_may_forbid_the_winner(make_builder: MakeBuilder) -> None:
    answer: Answer = {"often": -0.3, "rare": 0.08}
    builder, _ = make_builder(
        lambda _: answer, budget=Budget(SHORT), weights={"often": 9.0, "rare": 1.0}
    )
    confirmed = confirm((record("a"),), builder, 1.0, 1.01)
    assert confirmed
    name, gain = confirmed.worst_point
    assert (name, round(gain, 9)) == ("rare", round(math.exp(-0.08), 9))
    assert not confirmed.ships(1.01, 0.05)
    assert confirmed.ships(1.01, 0.10)


def test_the_engine_gain_is_over_the_fastest_baseline(make_builder: MakeBuilder) -> None:
    luck = iter([-0.2, -0.20, -0.15, -0.25, -0.22, -0.21])
    builder, _ = make_builder(lambda _: next(luck), budget=Budget(SHORT))
    confirmed = confirm((record("a"),), builder, 1.0, 1.01)
    assert confirmed
    assert confirmed.engine_gain.value == pytest.approx(math.exp(0.15))


@pytest.mark.parametrize(
    ("low", "ships"), [(1.02, True), (1.01, True), (1.009, False), (0.0, False)]
)
def test_the_lower_bound_decides(make_builder: MakeBuilder, low: float, ships: bool) -> None:
    builder, _ = make_builder(lambda _: -0.2, budget=Budget(SHORT))
    confirmed = confirm((record("a"),), builder, 1.0, 1.01)
    assert isinstance(confirmed, Confirmed)
    doubtful = replace(confirmed, route_gain=Gain(1.2, low, 1.3, 5))
    assert doubtful.ships(1.01, 0.05) is ships


def test_the_default_is_never_a_finalist(make_builder: MakeBuilder) -> None:
    builder, evaluator = make_builder(lambda _: -0.2)
    default = TrialRecord(0, BuildRoute(), TrialOutcome.FEASIBLE, 0.5)
    assert confirm((default,), builder, 1.0, 1.01) is None
    assert evaluator.tried == []
