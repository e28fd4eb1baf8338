"""Why a route is tried: what the sampler says is believed, the rest is seen from the route."""

import pytest

from smart_tuner.route.build_route import BuildRoute
from smart_tuner.storages.history import TrialRecord
from smart_tuner.study.search.purpose import PURPOSES, purpose_of
from smart_tuner.trial.trial import TrialOutcome


def route(text: str) -> BuildRoute:
    return BuildRoute(tuple((name, "on") for name in sorted(text)))


def record(number: int, text: str, value_ms: float | None) -> TrialRecord:
    outcome = TrialOutcome.BUILD_FAILED if value_ms is None else TrialOutcome.FEASIBLE
    return TrialRecord(number, route(text), outcome, value_ms)


KNOWN = (
    record(0, "", 2.0),
    record(1, "ab", 1.8),
    record(2, "cd", 1.9),
    record(3, "x", None),
    record(4, "ef", 1.95),
)
"""The best route so far has a and b; x broke."""


@pytest.mark.parametrize(
    ("tried", "purpose"),
    [
        ("", "baseline: the default route"),
        ("g", "screening: 1 value that no route had"),
        ("abgh", "screening: 2 values that no route had"),
        ("abc", "exploiting: the best route, 1 knob changed"),
        ("a", "exploiting: the best route, 1 knob changed"),
        ("abcde", "interaction: 5 values that worked apart, now together"),
        ("abcxe", "exploring: the best route, 3 knobs changed"),
    ],
)
def test_a_route_shows_what_it_is_tried_for(tried: str, purpose: str) -> None:
    assert str(purpose_of(route(tried), "", KNOWN)) == purpose
    assert str(purpose_of(route(tried), "tpe", KNOWN)) == purpose


@pytest.mark.parametrize("word", PURPOSES)
def test_a_sampler_that_names_a_purpose_is_believed(word: str) -> None:
    for said in (word, f"{word}, next to a known route"):
        assert purpose_of(route("abcxe"), said, KNOWN).word == word
        assert purpose_of(route("abcxe"), said, KNOWN).detail


def test_without_trials_everything_is_new() -> None:
    assert str(purpose_of(route("ab"), "", ())) == "screening: 2 values that no route had"
    said = purpose_of(route("ab"), "exploring", (record(0, "", 2.0),))
    assert said.detail == "the default, 2 knobs changed"
