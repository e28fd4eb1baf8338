from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState

from smart_tuner.errors import SearchExhausted, UserInputError
from smart_tuner.route.build_route import BuildRoute
from smart_tuner.samplers import registry
from smart_tuner.samplers.registry import make_sampler, sampler_names
from smart_tuner.storages.ask import ask_trial, enqueue, route_of
from smart_tuner.storages.history import best_feasible, finished_trials
from smart_tuner.storages.tell import tell_trial
from smart_tuner.testing.storage_contract import tried
from smart_tuner.trial.trial import Trial, TrialOutcome

if TYPE_CHECKING:
    from collections.abc import Mapping

optuna.logging.set_verbosity(optuna.logging.ERROR)

CHOICES = {f"k{i}": ("d", "e", "f")[: 2 + i % 2] for i in range(40)}
DEFAULTS = dict.fromkeys(CHOICES, "d")
EFFECTS = {"k3": -0.06, "k10": -0.04, "k21": -0.05, "k30": 0.05, "k31": 0.08}
BROKEN = {"k5", "k17"}
WEIGHTS = {"small": 1.0, "large": 1.0}


def compile_route(values: Mapping[str, str], generator: np.random.Generator) -> Trial:
    changed = {name for name, value in values.items() if value == "e"}
    if changed & BROKEN:
        return tried(TrialOutcome.BUILD_FAILED)
    noise = float(generator.normal(0, 0.002))
    log_ratio = sum(EFFECTS.get(name, 0.0) for name in changed) + noise
    is_wrong = "k8" in changed
    outcome = TrialOutcome.INFEASIBLE if is_wrong else TrialOutcome.FEASIBLE
    return tried(outcome, log_ratio, loss=1.0 if is_wrong else 0.0)


def search(name: str, count: int, seed: int = 0) -> optuna.Study:
    study = optuna.create_study(sampler=make_sampler(name, CHOICES, DEFAULTS, seed))
    generator = np.random.default_rng(seed)
    for _ in range(count):
        trial = ask_trial(study, CHOICES)
        tell_trial(study, trial, compile_route(trial.params, generator), 5.0, WEIGHTS)
    return study


def gain(study: optuna.Study) -> float:
    """Share of the attainable gain in log latency that the best route has, without noise."""
    best = best_feasible(finished_trials(study))
    assert best is not None
    chosen = {name for name, value in best.route.settings if value == "e"}
    return sum(EFFECTS.get(name, 0.0) for name in chosen) / -0.15


def test_the_default_finds_what_pays_and_learns_what_breaks() -> None:
    studies = [search("default", 80, seed) for seed in range(3)]
    assert np.mean([gain(study) for study in studies]) > 0.8
    for study in studies:
        broken = [trial for trial in study.trials if trial.state is TrialState.PRUNED]
        assert len(broken) < 16
        late = [trial for trial in broken if trial.number >= 60]
        assert len(late) <= 2


def test_the_default_beats_the_others_here() -> None:
    default = gain(search("default", 60))
    assert default > max(gain(search(name, 60)) for name in ("random", "fast", "evolution"))


def test_the_default_starts_around_the_default_route_and_covers_all_values() -> None:
    study = search("default", 80)
    routes = [route_of(trial.params, CHOICES) for trial in study.trials]
    assert not routes[0].settings
    assert len(routes[1]) <= 20
    reasons = {trial.user_attrs["reason"] for trial in study.trials}
    assert {"baseline", "screening", "exploiting"} <= reasons
    tried_values = {pair for route in routes for pair in route.settings}
    assert len(tried_values) >= 58


def test_values_without_effect_are_not_screened_again() -> None:
    sampler = make_sampler("default", CHOICES, DEFAULTS, 0)
    study = optuna.create_study(sampler=sampler)
    idle = {f"k{i}": "e" for i in range(0, 40, 2)}
    for name in idle:
        enqueue(study, {name: "e"}, "asked for", CHOICES)
        unchanged = Trial(BuildRoute(), TrialOutcome.FEASIBLE, unchanged=True)
        tell_trial(study, ask_trial(study, CHOICES), unchanged, 5.0, WEIGHTS)
    for _ in range(12):
        trial = ask_trial(study, CHOICES)
        if trial.user_attrs["reason"] == "screening":
            assert not trial.params.items() & idle.items()
        tell_trial(study, trial, tried(TrialOutcome.FEASIBLE, 0.0), 5.0, WEIGHTS)


def test_fast_sweeps_one_knob_at_a_time_in_order() -> None:
    choices = {"a": ("0", "1", "2"), "b": ("x", "y")}
    study = optuna.create_study(sampler=make_sampler("fast", choices, {"a": "1", "b": "x"}, 0))
    swept = [tuple(ask_trial(study, choices).params.values()) for _ in range(4)]
    with pytest.raises(SearchExhausted, match="sweep is complete"):
        ask_trial(study, choices)
    assert swept == [("1", "x"), ("0", "x"), ("2", "x"), ("1", "y")]


def test_mixed_combines_what_was_faster_and_acceptable() -> None:
    choices = dict.fromkeys(("a", "slow", "b", "wrong", "c"), ("d", "e"))
    sampler = make_sampler("mixed", choices, dict.fromkeys(choices, "d"), 0)
    study = optuna.create_study(sampler=sampler)
    routes = []
    for _ in range(10):
        trial = ask_trial(study, choices)
        routes.append(route_of(trial.params, choices))
        names = {name for name, _ in routes[-1].settings}
        outcome = TrialOutcome.INFEASIBLE if "wrong" in names else TrialOutcome.FEASIBLE
        log_ratio = 0.1 if "slow" in names else -0.1 * len(names)
        ended = tried(outcome, log_ratio, loss=1.0 if "wrong" in names else 0.0)
        tell_trial(study, trial, ended, 5.0, WEIGHTS)
    with pytest.raises(SearchExhausted):
        ask_trial(study, choices)
    combined = ["".join(name for name, _ in route.settings) for route in routes[6:]]
    assert combined == ["bc", "ac", "ab", "abc"]


def test_mixed_combines_ten_knobs_at_most() -> None:
    study = search("fast", 2)
    sampler = make_sampler("mixed", CHOICES, DEFAULTS, 0)
    study.sampler = sampler
    names = list(CHOICES)
    for _ in range(70):
        trial = ask_trial(study, CHOICES)
        position = min((names.index(n) for n, v in trial.params.items() if v != "d"), default=0)
        ended = tried(TrialOutcome.FEASIBLE, -0.01 * position - 0.005)
        tell_trial(study, trial, ended, 5.0, WEIGHTS)
    routes = [route_of(trial.params, CHOICES) for trial in study.trials]
    combined = {name for route in routes if len(route) > 1 for name, _ in route.settings}
    assert combined <= set(names[-10:])


def test_tpe_starts_around_the_default_and_then_learns() -> None:
    study = search("tpe", 30)
    reasons = [trial.user_attrs["reason"] for trial in study.trials]
    assert reasons[0] == "baseline"
    assert set(reasons[1:21]) == {"start around the default"}
    assert {reason.split(",")[0] for reason in reasons[21:]} == {"tpe"}
    flips = [len(route_of(trial.params, CHOICES)) for trial in study.trials]
    assert set(flips[1:21]) == {3}


def test_seeds_give_different_searches() -> None:
    first, second = (search("default", 8, seed).trials for seed in (1, 2))
    assert [trial.params for trial in first] != [trial.params for trial in second]
    make_sampler("default", CHOICES, DEFAULTS, -5)


def test_unknown_samplers_are_answered_with_the_list() -> None:
    names = ("default", "evolution", "fast", "mixed", "random", "tpe")
    assert set(names) <= set(sampler_names())
    with pytest.raises(UserInputError, match=r"'magic'.*default, evolution, fast"):
        make_sampler("magic", CHOICES, DEFAULTS, 0)


class Foreign(optuna.samplers.RandomSampler):
    api_version = 1

    def __init__(self, choices: object, defaults: object, seed: int) -> None:
        super().__init__(seed=seed)


class TooNew(Foreign):
    api_version = 2


def test_other_packages_add_samplers(monkeypatch: pytest.MonkeyPatch) -> None:
    here = "test_samplers"
    entries = [EntryPoint("foreign", here, ""), EntryPoint("new", here, "")]
    loaded = {"foreign": Foreign, "new": TooNew}
    monkeypatch.setattr(EntryPoint, "load", lambda entry: loaded[entry.name])
    monkeypatch.setattr(registry, "entry_points", lambda group: entries)
    assert isinstance(make_sampler("foreign", CHOICES, DEFAULTS, 0), Foreign)
    assert "foreign" in sampler_names()
    with pytest.raises(UserInputError, match="API 2"):
        make_sampler("new", CHOICES, DEFAULTS, 0)
    study = optuna.create_study(sampler=make_sampler("foreign", CHOICES, DEFAULTS, 0))
    assert ask_trial(study, CHOICES).user_attrs["reason"] == "Foreign"
