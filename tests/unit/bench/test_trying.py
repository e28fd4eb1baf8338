from __future__ import annotations

import math
from pathlib import Path

import optuna
import pytest
from optuna.trial import TrialState

from smart_tuner.bench.trying import WEIGHTS, PretendEvaluator
from smart_tuner.bench.workloads import Workload
from smart_tuner.knobs.knob import Knob
from smart_tuner.measure.stop_rule import StopRule
from smart_tuner.route.build_route import BuildRoute
from smart_tuner.simulate.compiler import SimulatedCompiler
from smart_tuner.simulate.effects import Failure, Noise, ValueEffect
from smart_tuner.storages.ask import ask_trial, enqueue, route_of
from smart_tuner.storages.tell import tell_trial
from smart_tuner.trial.trial import TrialOutcome

FATES = ("fast", "idle", "lossy", "nan", "crash", "ignored", "hang", "dies")
KNOBS = tuple(Knob(name, ("no", "yes"), "no") for name in FATES)
EFFECTS = (
    ValueEffect("fast", "yes", log_latency=-0.1),
    ValueEffect("idle", "yes", noop=True),
    ValueEffect("lossy", "yes", log_latency=-0.2, loss=1.0),
    ValueEffect("nan", "yes", failure=Failure.NAN),
    ValueEffect("crash", "yes", failure=Failure.SEGFAULT),
    ValueEffect("ignored", "yes", failure=Failure.NOT_APPLIED),
    ValueEffect("hang", "yes", failure=Failure.HANG),
    ValueEffect("dies", "yes", failure=Failure.RUN_ERROR),
)
COMPILER = SimulatedCompiler(KNOBS, effects=EFFECTS, base_latency_ms=2.0)
WORKLOAD = Workload("by hand", 1, len(KNOBS))
CHOICES = {knob.name: knob.choices for knob in KNOBS}


def evaluator(compiler: SimulatedCompiler = COMPILER) -> PretendEvaluator:
    return PretendEvaluator(WORKLOAD, compiler)


def route(*names: str) -> BuildRoute:
    return BuildRoute(tuple((name, "yes") for name in sorted(names)))


def told(name: str) -> optuna.trial.FrozenTrial:
    """What a study holds after one trial of one fate, told as the product tells."""
    study = optuna.create_study()
    pretend = evaluator()
    enqueue(study, {name: "yes"}, "", CHOICES)
    asked = ask_trial(study, CHOICES)
    tried = pretend.attempt(route_of(asked.params, CHOICES))
    return tell_trial(study, asked, tried, pretend.baseline_ms, WEIGHTS)


@pytest.mark.parametrize(
    ("name", "state", "broken"),
    [
        ("fast", TrialState.COMPLETE, None),
        ("idle", TrialState.COMPLETE, None),
        ("lossy", TrialState.COMPLETE, "accuracy"),
        ("nan", TrialState.COMPLETE, "accuracy"),
        ("crash", TrialState.PRUNED, "built"),
        ("hang", TrialState.PRUNED, "built"),
        ("ignored", TrialState.PRUNED, "applied"),
        ("dies", TrialState.PRUNED, "ran"),
    ],
)
def test_fates_reach_the_study_as_those_of_real_trials_do(
    name: str, state: TrialState, broken: str | None
) -> None:
    trial = told(name)
    assert trial.state is state
    assert [key for key, value in trial.constraints.items() if value > 0] == (
        [broken] if broken else []
    )
    assert trial.user_attrs["unchanged"] is (name == "idle")
    assert trial.user_attrs["measured"] is (name in ("fast", "lossy"))


def test_equal_engines_have_equal_fingerprints() -> None:
    fingerprint = told("idle").user_attrs["engine_fingerprint"]
    default = evaluator().attempt(BuildRoute()).engine
    assert default is not None
    assert fingerprint == default.fingerprint
    assert told("fast").user_attrs["engine_fingerprint"] != fingerprint


def test_a_route_shows_the_same_whoever_asks_and_whenever() -> None:
    one, other = evaluator(), evaluator()
    other.attempt(route("crash"))
    other.attempt(route("fast", "lossy"))
    assert one.attempt(route("fast")) == other.attempt(route("fast"))
    assert one.attempt(route("fast")) == other.attempt(route("fast"))


def test_a_repeat_is_another_build_and_another_workload_has_other_luck() -> None:
    pretend = evaluator()
    first, second = (pretend.attempt(route("fast")).comparisons for _ in range(2))
    assert first[0].log_ratio != second[0].log_ratio
    elsewhere = PretendEvaluator(Workload("by hand", 2, len(KNOBS)), COMPILER)
    assert elsewhere.attempt(route("fast")).comparisons[0].log_ratio != first[0].log_ratio


def test_the_search_is_measured_against_one_baseline_with_its_luck() -> None:
    noisy = SimulatedCompiler(KNOBS, effects=EFFECTS, noise=Noise(0.1, 0.0, spike_rate=0))
    pretend = evaluator(noisy)
    luck = math.log(pretend.baseline_ms)
    assert luck != 0
    ratios = [
        pretend.attempt(route("fast")).comparisons[0].log_ratio + luck + 0.1 for _ in range(200)
    ]
    assert sum(ratios) / 200 == pytest.approx(0, abs=0.03)


def test_fresh_builds_are_fair_and_cost_the_search_nothing() -> None:
    pretend = evaluator()
    rule = StopRule.fixed(4)
    trials = [pretend.evaluate(route("fast"), Path(), rule) for _ in range(300)]
    mean = sum(trial.comparisons[0].log_ratio for trial in trials) / 300
    assert mean == pytest.approx(-0.1, abs=0.01)
    assert pretend.seconds == 0


def test_failures_cost_what_they_took() -> None:
    costs = {}
    for name in ("fast", "crash", "hang", "ignored"):
        pretend = evaluator()
        pretend.attempt(route(name))
        costs[name] = pretend.seconds
    assert costs == {"fast": 10, "crash": 5, "hang": 60, "ignored": 0}


def test_the_truth_has_no_noise() -> None:
    assert evaluator().log_latency(route("fast", "lossy")) == pytest.approx(-0.3)
    assert evaluator().attempt(route("lossy")).outcome is TrialOutcome.INFEASIBLE
