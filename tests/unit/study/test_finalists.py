import math
from collections.abc import Callable, Iterable

import numpy as np
import pytest

from smart_tuner.route.build_route import BuildRoute
from smart_tuner.storages.history import TrialRecord
from smart_tuner.study.progress.budget import Budget
from smart_tuner.study.proof.finalists import (
    REPORT_ROUNDS,
    SHORTLIST,
    best_rebuilt,
    report_rounds,
    shortlist,
    without_idle_knobs,
)
from smart_tuner.study.proof.fresh import Fresh, FreshBuilder
from smart_tuner.trial.trial import TrialOutcome
from tests.unit.study.pretend import Answer, PretendEvaluator, route

MakeBuilder = Callable[..., tuple[FreshBuilder, PretendEvaluator]]


def record(number: int, tried: BuildRoute, value_ms: float | None, **more: object) -> TrialRecord:
    outcome = TrialOutcome.FEASIBLE
    values = {"half_width": 0.001, "fingerprint": str(number)} | more
    return TrialRecord(number, tried, **({"outcome": outcome, "value_ms": value_ms} | values))  # type: ignore[arg-type]


class TestShortlist:
    def test_the_fastest_come_first_and_they_are_few(self) -> None:
        records = [record(n, route(f"k{n}"), 1 - n / 50) for n in range(1, 9)]
        assert shortlist(records, 1.0, 1.01) == tuple(route(f"k{n}") for n in (8, 7, 6))
        assert SHORTLIST == 3

    def test_a_sure_gain_ranks_before_a_lucky_one(self) -> None:
        records = [
            record(1, route("lucky"), 0.80, half_width=0.2),
            record(2, route("sure"), 0.85, half_width=0.001),
        ]
        assert shortlist(records, 1.0, 1.01) == (route("sure"), route("lucky"))

    def test_what_cannot_reach_the_smallest_gain_is_left_out(self) -> None:
        records = [
            record(1, route("a"), 0.999, half_width=0.0),
            record(2, route("b"), 0.995, half_width=0.01),
            record(3, route("c"), 1.2, half_width=None),
        ]
        assert shortlist(records, 1.0, 1.01) == (route("b"),)

    @pytest.mark.parametrize("outcome", [o for o in TrialOutcome if o.value != "feasible"])
    def test_only_feasible_routes_count(self, outcome: TrialOutcome) -> None:
        assert shortlist([record(1, route("a"), 0.5, outcome=outcome)], 1.0, 1.01) == ()

    def test_the_default_unmeasured_and_unchanged_routes_do_not_count(self) -> None:
        records = [
            record(0, BuildRoute(), 0.5),
            record(1, route("a"), None),
            record(2, route("b"), 1.0, unchanged=True),
        ]
        assert shortlist(records, 1.0, 1.0) == ()

    def test_one_engine_counts_once_by_its_shortest_route(self) -> None:
        records = [
            record(1, route("a", "idle"), 0.80, fingerprint="same"),
            record(2, route("a"), 0.81, fingerprint="same"),
            record(3, route("b"), 0.90, fingerprint="other"),
            record(4, route("c"), 0.91, fingerprint=""),
            record(5, route("d"), 0.92, fingerprint=""),
        ]
        assert shortlist(records, 1.0, 1.01) == (route("a"), route("b"), route("c"))


class TestRebuilding:
    def test_the_fastest_on_fresh_builds_wins_not_the_luckiest_trial(
        self, make_builder: MakeBuilder
    ) -> None:
        answers = {route("a"): -0.1, route("b"): -0.2, route("c"): -0.15}
        builder, _ = make_builder(answers.__getitem__)
        best = best_rebuilt(answers, builder)
        assert best
        assert best.route == route("b")

    def test_those_that_fail_this_time_are_left_out(self, make_builder: MakeBuilder) -> None:
        answers: dict[BuildRoute, Answer] = {
            route("a"): TrialOutcome.RUN_FAILED,
            route("b"): -0.1,
        }
        builder, _ = make_builder(answers.__getitem__)
        best = best_rebuilt(answers, builder)
        assert best
        assert best.route == route("b")
        none, _ = make_builder(lambda _: TrialOutcome.INFEASIBLE)
        assert best_rebuilt(answers, none) is None

    def test_rounds_of_the_report_are_not_spent_on_finalists(
        self, make_builder: MakeBuilder
    ) -> None:
        builder, evaluator = make_builder(lambda _: -0.1, budget=Budget(50.0))
        builder.seconds.append(10.0)  # six rounds do not fit any more
        assert best_rebuilt([route("a"), route("b")], builder)
        assert evaluator.tried == [route("a")]


def best_of(builder: FreshBuilder, names: Iterable[str]) -> Fresh:
    fresh = builder.measure(route(*names), "finalist")
    assert fresh
    return fresh


class TestReset:
    @pytest.mark.parametrize("paying", ["a", "h", "ah", "cf", "abcdefgh"])
    def test_exactly_the_knobs_that_pay_are_kept(
        self, make_builder: MakeBuilder, paying: str
    ) -> None:
        def answer(tried: BuildRoute) -> float:
            return -0.05 * sum(name in paying for name in tried.values)

        builder, evaluator = make_builder(answer)
        best = without_idle_knobs(best_of(builder, "abcdefgh"), builder)
        assert best.route == route(*paying)
        assert len(evaluator.tried) < 25, "by halves, not one by one from the start"

    def test_build_noise_does_not_keep_useless_knobs_nor_lose_good_ones(
        self, make_builder: MakeBuilder
    ) -> None:
        rng = np.random.default_rng(3)

        def answer(tried: BuildRoute) -> float:
            return -0.1 * ("d" in tried.values) + 0.0005 * rng.standard_normal()

        builder, _ = make_builder(answer)
        best = without_idle_knobs(best_of(builder, "abcdefgh"), builder)
        assert "d" in best.route.values
        assert len(best.route) <= 2

    def test_a_shorter_route_that_breaks_epsilon_is_not_taken(
        self, make_builder: MakeBuilder
    ) -> None:
        def answer(tried: BuildRoute) -> Answer:
            return -0.1 if "guard" in tried.values else TrialOutcome.INFEASIBLE

        builder, _ = make_builder(answer)
        best = without_idle_knobs(best_of(builder, ("fast", "guard")), builder)
        assert "guard" in best.route.values

    def test_the_same_engine_is_always_as_fast(self, make_builder: MakeBuilder) -> None:
        """Two routes with one fingerprint differ by measurement noise only."""
        noise = iter([-0.1, -0.05, -0.05, -0.05, -0.05])
        builder, evaluator = make_builder(lambda _: next(noise))
        evaluator.fingerprint = "same"
        assert len(without_idle_knobs(best_of(builder, "ab"), builder).route) == 1

    def test_small_losses_do_not_add_up(self, make_builder: MakeBuilder) -> None:
        """Eight knobs of a fifth of a percent each: every reset is tolerable, all of them not."""
        builder, _ = make_builder(lambda tried: -0.1 - 0.002 * len(tried))
        best = without_idle_knobs(best_of(builder, "abcdefghij"), builder)
        assert best.log_ratio <= -0.1 - 0.002 * 10 + 0.01

    def test_one_knob_cannot_be_cut(self, make_builder: MakeBuilder) -> None:
        builder, evaluator = make_builder(lambda _: -0.1)
        best = best_of(builder, "a")
        assert without_idle_knobs(best, builder) is best
        assert len(evaluator.tried) == 1

    def test_it_stops_where_the_report_s_rounds_begin(self, make_builder: MakeBuilder) -> None:
        builder, evaluator = make_builder(lambda _: -0.1, budget=Budget(50.0))
        best = best_of(builder, "abcd")
        builder.seconds.append(10.0)
        assert without_idle_knobs(best, builder) is best
        assert len(evaluator.tried) == 1


class TestReport:
    @pytest.mark.parametrize(
        ("left", "rounds"), [(1000.0, REPORT_ROUNDS), (35.0, 3), (11.0, 2), (0.0, 2)]
    )
    def test_as_many_rounds_as_fit_at_least_two(
        self, make_builder: MakeBuilder, left: float, rounds: int
    ) -> None:
        builder, _ = make_builder(lambda _: -0.1, budget=Budget(left))
        builder.seconds.append(10.0)
        assert len(report_rounds(route("a"), builder)) == rounds

    def test_a_round_that_failed_is_reported_too(self, make_builder: MakeBuilder) -> None:
        answers = iter([-0.1, TrialOutcome.RUN_FAILED, -0.1, -0.1, -0.1])
        builder, _ = make_builder(lambda _: next(answers))
        rounds = report_rounds(route("a"), builder)
        assert [fresh is None for fresh in rounds] == [False, True, False, False, False]

    def test_figures_are_not_those_that_chose_the_finalist(
        self, make_builder: MakeBuilder
    ) -> None:
        luck = iter([-0.5, *[-0.1] * 5])
        builder, _ = make_builder(lambda _: next(luck))
        best_rebuilt([route("a")], builder)
        ratios = [fresh.log_ratio for fresh in report_rounds(route("a"), builder) if fresh]
        assert ratios == [-0.1] * 5
        assert not any(math.isclose(ratio, -0.5) for ratio in ratios)
