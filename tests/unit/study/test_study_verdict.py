from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from smart_tuner.route.build_route import BuildRoute
from smart_tuner.storages.history import TrialRecord
from smart_tuner.study.proof.confirm import Confirmed
from smart_tuner.study.proof.fresh import FreshBuilder
from smart_tuner.study.proof.gain import Gain
from smart_tuner.study.proof.result import Verdict
from smart_tuner.study.proof.verdict import Evidence, decide
from smart_tuner.study.proof.wording import within_words
from smart_tuner.trial.trial import TrialOutcome
from tests.unit.study.pretend import PretendEvaluator, route

MakeBuilder = Callable[..., tuple[FreshBuilder, PretendEvaluator]]

RECORDS = (
    TrialRecord(0, BuildRoute(), TrialOutcome.FEASIBLE, 1.0, unchanged=True),
    TrialRecord(1, route("a"), TrialOutcome.FEASIBLE, 0.8),
    TrialRecord(2, route("b"), TrialOutcome.BUILD_FAILED),
    TrialRecord(3, route("c"), TrialOutcome.INFEASIBLE, 0.7),
)
GOOD = Gain(1.2, 1.15, 1.25, 5)


@pytest.fixture
def confirmed(make_builder: MakeBuilder) -> Confirmed:
    builder, _ = make_builder(lambda _: -0.18)
    shipped = builder.measure(route("a"), "report")
    assert shipped
    return Confirmed(shipped, GOOD, GOOD, None, False, ("default", 1.2))


def evidence(confirmed: Confirmed | None, **changes: Any) -> Evidence:
    plain = Evidence(
        study=Path("/study"),
        records=RECORDS,
        confirmed=confirmed,
        bare_gain=None,
        held_out_failure="",
        synthetic=False,
        min_gain=1.01,
        max_regression=0.05,
        spent_seconds=12.0,
        notes=("heard",),
        within=within_words({"metric": "linf", "epsilon": 0.001}),
    )
    return replace(plain, **changes)


def test_no_gain_comes_with_the_interval_of_the_fastest_route() -> None:
    records = (
        TrialRecord(0, BuildRoute(), TrialOutcome.FEASIBLE, 2.0, unchanged=True),
        TrialRecord(1, route("a"), TrialOutcome.FEASIBLE, 2.0 / 1.004, half_width=0.01),
        TrialRecord(2, route("b"), TrialOutcome.FEASIBLE, 2.5, half_width=0.01),
        TrialRecord(3, route("c"), TrialOutcome.INFEASIBLE, 1.0, half_width=0.01),
    )
    assert decide(evidence(None, records=records)).sentence == (
        "No gain of 1.01x or more is proven: best candidate 1.004x (95 % interval 0.994 to 1.014, "
        "one measurement), 2 of 3 routes were compared, 1 failed or broke epsilon."
    )


def test_a_disturbed_measurement_is_said_whatever_the_verdict(confirmed: Confirmed) -> None:
    disturbed = replace(confirmed, disturbed=4)
    caution = " Other work or drift disturbed 4 of 5 of these measurements: repeat it on a quiet machine."
    assert decide(evidence(disturbed)).sentence.endswith(caution)
    assert decide(evidence(disturbed, min_gain=2.0)).sentence.endswith(caution)
    assert "disturbed" not in decide(evidence(confirmed)).sentence


def test_a_winner_says_how_much_how_sure_and_with_what(confirmed: Confirmed) -> None:
    bare = Gain(1.5, 1.4, 1.6, 3)
    result = decide(evidence(confirmed, bare_gain=bare))
    assert result.verdict is Verdict.WINNER
    assert result.route == "-a=on"
    assert result.gain == 1.2
    assert (result.route_gain, result.engine_gain, result.bare_gain) == (GOOD, GOOD, bare)
    assert result.sentence == (
        f"{result.finding}. Largest loss: output 'y' (point 'default', pair 'pair'): linf 0 of "
        "0.001 allowed."
    )
    assert result.finding == (
        "1.200x faster than the default (95 % interval 1.150 to 1.250, 5 fresh builds a side), "
        "within epsilon 0.001 (linf), with 1 knob set"
    )
    (loss,) = result.accuracy
    assert (loss.worst_pair, loss.pairs, loss.epsilon) == ("pair", 1, 0.001)
    assert result.trials == {"no effect": 1, "feasible": 1, "build_failed": 1, "infeasible": 1}
    assert (result.notes, result.spent_seconds, result.study) == (
        ("heard",),
        12.0,
        Path("/study"),
    )


def test_doubts_are_said_aloud(confirmed: Confirmed) -> None:
    result = decide(evidence(replace(confirmed, indicative=True), synthetic=True))
    assert result.verdict is Verdict.WINNER
    assert result.indicative
    assert result.provisional
    assert "Indicative only" in result.sentence
    assert "Provisional: the inputs were synthetic." in result.sentence


def test_nothing_worth_confirming_counts_what_was_tried() -> None:
    result = decide(evidence(None))
    assert result.verdict is Verdict.DEFAULT_IS_BEST
    assert result.route == ""
    assert result.gain == 1.0
    assert result.sentence == (
        "No gain of 1.01x or more: 1 of 3 routes were compared, 2 failed or broke epsilon."
    )


def test_without_failures_none_are_named() -> None:
    result = decide(evidence(None, records=RECORDS[:2], min_gain=1.5))
    assert result.sentence == "No gain of 1.5x or more: the only route was compared."


def test_a_budget_that_ended_before_anything_was_tried_leaves_it_undecided() -> None:
    for records in ((), RECORDS[:1]):
        result = decide(evidence(None, records=records))
        assert result.verdict is Verdict.UNDECIDED
        assert result.gain == 1.0
        assert "Undecided: " in result.sentence
        assert "--budget" in result.sentence


def test_a_gain_that_the_budget_cannot_prove_leaves_it_undecided() -> None:
    seen = (*RECORDS[:1], TrialRecord(1, route("a"), TrialOutcome.FEASIBLE, 0.8, half_width=0.01))
    result = decide(evidence(None, records=seen, needed_seconds=601.0))
    assert result.verdict is Verdict.UNDECIDED
    assert result.sentence == (
        "Undecided: the best of 1 route was measured at 1.250x (95 % interval 1.238 to 1.263, one "
        "measurement), but the builds that would prove it need --budget 11m or more; continue it "
        "with a larger --budget."
    )
    assert "seems faster" in decide(evidence(None, needed_seconds=1.0)).sentence


def test_a_gain_that_is_not_proven_does_not_ship(confirmed: Confirmed) -> None:
    doubtful = replace(confirmed, route_gain=Gain(1.02, 0.99, 1.05, 5))
    result = decide(evidence(doubtful))
    assert result.verdict is Verdict.DEFAULT_IS_BEST
    assert result.route == ""
    assert result.route_gain == doubtful.route_gain
    assert result.sentence == (
        "No gain of 1.01x or more is proven: best candidate 1.020x (95 % interval 0.990 to 1.050, "
        "5 fresh builds a side), 1 of 3 routes were compared, 2 failed or broke epsilon."
    )


def test_sustained_load_that_contradicts_is_named(confirmed: Confirmed) -> None:
    tired = replace(confirmed, sustained_gain=Gain(0.97, 0.95, 0.99, 4))
    result = decide(evidence(tired))
    assert result.verdict is Verdict.DEFAULT_IS_BEST
    assert result.sentence.startswith(
        "No gain of 1.01x or more: best candidate 0.970x (95 % interval 0.950 to 0.990, under "
        "sustained load), "
    )


def test_a_wide_interval_under_sustained_load_contradicts_nothing(confirmed: Confirmed) -> None:
    noisy = replace(confirmed, sustained_gain=Gain(0.88, 0.62, 1.23, 4))
    assert noisy.deciding_gain is noisy.route_gain
    assert decide(evidence(noisy)).verdict is Verdict.WINNER


def test_sustained_load_that_agrees_changes_nothing(confirmed: Confirmed) -> None:
    result = decide(evidence(replace(confirmed, sustained_gain=Gain(1.18, 1.1, 1.2, 4))))
    assert result.verdict is Verdict.WINNER


def test_a_slow_point_is_named(confirmed: Confirmed) -> None:
    lopsided = replace(confirmed, worst_point=("wide", 0.9))
    result = decide(evidence(lopsided))
    assert result.verdict is Verdict.DEFAULT_IS_BEST
    assert result.sentence == (
        "The default ships: the fastest route (-a=on) gains 1.200x (95 % interval 1.150-1.250), "
        "but slows point wide to 0.900x."
    )
    assert decide(evidence(lopsided, max_regression=0.2)).verdict is Verdict.WINNER


def test_held_out_inputs_decide(confirmed: Confirmed) -> None:
    result = decide(evidence(confirmed, held_out_failure="output 'y': linf loss 1 is over"))
    assert result.verdict is Verdict.DEFAULT_IS_BEST
    assert result.route == ""
    assert result.sentence == (
        "The default ships: the fastest route (-a=on) fails on held-out inputs: output 'y': linf "
        "loss 1 is over."
    )


def test_a_route_that_failed_once_does_not_ship(confirmed: Confirmed) -> None:
    result = decide(evidence(replace(confirmed, failures=1)))
    assert result.verdict is Verdict.DEFAULT_IS_BEST
    assert "(-a=on) failed or broke epsilon in 1 of its fresh builds." in result.sentence


def test_every_sentence_is_one_line(confirmed: Confirmed) -> None:
    for item in (None, confirmed, replace(confirmed, failures=2)):
        assert "\n" not in decide(evidence(item)).sentence
