from collections.abc import Callable
from pathlib import Path

import pytest

from smart_tuner.route.build_route import BuildRoute
from smart_tuner.study.progress.budget import Budget
from smart_tuner.study.progress.events import RouteMeasured
from smart_tuner.study.proof.fresh import PAIRS, FreshBuilder, fixed_rule
from smart_tuner.trial.trial import TrialOutcome
from tests.unit.study.pretend import HALF_WIDTH, Answer, PretendEvaluator, Recorder, route

MakeBuilder = Callable[..., tuple[FreshBuilder, PretendEvaluator]]


def heard(builder: FreshBuilder) -> list[RouteMeasured]:
    assert isinstance(builder.listener, Recorder)
    return builder.listener.of(RouteMeasured)


def test_a_measurement_is_told_and_lies_in_a_folder_of_its_own(
    make_builder: MakeBuilder, tmp_path: Path
) -> None:
    builder, _ = make_builder(lambda _: -0.1)
    fresh = [builder.measure(route("a"), "report") for _ in range(2)]
    assert all(item and item.log_ratio == -0.1 for item in fresh)
    assert all(item and item.half_width == pytest.approx(HALF_WIDTH) for item in fresh)
    assert {path.name for path in (tmp_path / "finalists").iterdir()} == {"report-0", "report-1"}
    first, second = heard(builder)
    assert (first.phase, first.route, first.message) == ("report", route("a"), "")
    assert first.gain == second.gain == pytest.approx(1.105, abs=0.001)


@pytest.mark.parametrize("outcome", [o for o in TrialOutcome if o is not TrialOutcome.FEASIBLE])
def test_a_route_that_fails_gives_nothing_and_says_why(
    make_builder: MakeBuilder, outcome: TrialOutcome
) -> None:
    builder, _ = make_builder(lambda _: outcome)
    assert builder.measure(route("a"), "finalist") is None
    (event,) = heard(builder)
    assert event.gain is None
    assert event.half_width is None
    assert event.message == "it broke"


def test_an_engine_that_is_the_baseline_s_gains_nothing(make_builder: MakeBuilder) -> None:
    builder, _ = make_builder(lambda _: -0.1)
    fresh = builder.measure(BuildRoute(), "finalist")
    assert fresh
    assert (fresh.log_ratio, fresh.half_width) == (0.0, 0.0)
    assert heard(builder)[0].message == "no effect"


def test_points_are_weighted(make_builder: MakeBuilder) -> None:
    answer: Answer = {"a": -0.3, "b": 0.1}
    builder, _ = make_builder(lambda _: answer, weights={"a": 3.0, "b": 1.0})
    fresh = builder.measure(route("x"), "finalist")
    assert fresh
    assert fresh.log_ratio == pytest.approx(-0.2)


def test_rounds_are_affordable_by_the_longest_of_the_latest(make_builder: MakeBuilder) -> None:
    builder, _ = make_builder(lambda _: 0.0, budget=Budget(100.0))
    assert builder.affords(1000), "nobody knows yet"
    builder.seconds += [50.0, 1.0, 1.0, 8.0, 1.0, 1.0]
    assert builder.round_seconds == 8.0
    assert builder.affords(12)
    assert not builder.affords(13)


@pytest.mark.parametrize("baseline_ms", [0.01, 1.0, 50.0, 5000.0])
@pytest.mark.parametrize("seconds", [1.0, 30.0, 240.0])
def test_the_sample_size_is_fixed_even_and_bounded(baseline_ms: float, seconds: float) -> None:
    rule = fixed_rule(baseline_ms, seconds)
    assert rule.min_pairs == rule.max_pairs
    assert rule.max_pairs % 2 == 0
    assert PAIRS[0] <= rule.max_pairs <= PAIRS[1]


def test_more_time_and_faster_models_give_more_samples() -> None:
    assert fixed_rule(1.0, 240.0).max_pairs == PAIRS[1]
    assert fixed_rule(1.0, 1.0).max_pairs == PAIRS[0]
    assert fixed_rule(1.0, 15.0).max_pairs > fixed_rule(100.0, 15.0).max_pairs
