from __future__ import annotations

import numpy as np
import pytest

from smart_tuner.errors import UserInputError
from smart_tuner.knobs.knob import Knob
from smart_tuner.route.build_route import BuildRoute
from smart_tuner.simulate.fitted import StudiedTrial, fit_compiler

KNOBS = tuple(Knob(name, ("no", "yes"), "no") for name in "abcdef")
DEFAULT = StudiedTrial(BuildRoute(), "feasible", 2.0, None, unchanged=True, seconds=3.0)


def trial(
    names: str, latency: float | None, outcome: str = "feasible", **rest: object
) -> StudiedTrial:
    route = BuildRoute(tuple((name, "yes") for name in names))
    fields = {"half_width": 0.01, "unchanged": False, "seconds": 3.0, **rest}
    return StudiedTrial(route, outcome, latency, **fields)  # type: ignore[arg-type]


def test_effects_of_a_known_compiler_are_found_again() -> None:
    knobs = tuple(Knob(f"k{number}", ("no", "yes"), "no") for number in range(20))
    effects = {"k3": -0.1, "k7": 0.05, "k11": -0.03}
    random = np.random.default_rng(0)
    trials = [DEFAULT]
    for _ in range(80):
        names = sorted(random.choice([knob.name for knob in knobs], 4, replace=False).tolist())
        log_ratio = sum(effects.get(name, 0.0) for name in names) + random.normal(0, 0.003)
        route = BuildRoute(tuple((name, "yes") for name in names))
        latency = 2.0 * float(np.exp(log_ratio))
        trials.append(StudiedTrial(route, "feasible", latency, 0.00588, False, 3.0))
    fitted = fit_compiler(knobs, trials, "made up")
    for name, effect in effects.items():
        found = np.log(fitted.latency_ms({name: "yes"}) / 2.0)
        assert found == pytest.approx(effect, abs=0.005)
    assert len([effect for effect in fitted.effects if effect.log_latency]) <= 4
    assert fitted.noise.measurement == pytest.approx(0.003)
    assert fitted.noise.build == pytest.approx(0.003, rel=0.5)


def test_failures_are_blamed_on_what_never_worked() -> None:
    trials = [
        DEFAULT,
        trial("ab", None, "build_failed"),
        trial("bc", None, "build_failed"),
        trial("a", 2.0),
        trial("c", 2.0),
        trial("cd", 2.0, "infeasible"),
        trial("de", None, "timed_out"),
        trial("e", 2.0),
    ]
    compiler = fit_compiler(KNOBS, trials, "made up")
    assert compiler.failure({"b": "yes"}) is not None
    assert compiler.failure({"a": "yes", "c": "yes", "e": "yes"}) is None
    assert not compiler.is_feasible({"d": "yes"})


def test_what_left_the_engine_unchanged_does_nothing() -> None:
    compiler = fit_compiler(KNOBS, [DEFAULT, trial("ab", 2.0, unchanged=True)], "made up")
    assert compiler.is_noop("a", "yes")
    assert not compiler.is_noop("c", "yes")
    assert compiler.attainable_gain() == 1


def test_a_study_without_a_baseline_is_refused() -> None:
    with pytest.raises(UserInputError, match="made up: the default route"):
        fit_compiler(KNOBS, [trial("a", 2.0)], "made up")
