from pathlib import Path

import optuna
import pytest

from smart_tuner.engine.build import BuildRequest, Engine
from smart_tuner.measure.latency import Comparison, LatencySummary
from smart_tuner.route.build_route import BuildRoute
from smart_tuner.storages.ask import ask_trial
from smart_tuner.storages.history import finished_trials, outcome_key
from smart_tuner.storages.keys import CONSTRAINT_KEYS, OVER_LIMIT
from smart_tuner.storages.tell import tell_trial
from smart_tuner.trial.trial import Trial, TrialOutcome
from smart_tuner.validate.limits import BUILD_TIME, ENGINE_SIZE, MEMORY, Limits
from smart_tuner.validate.losses import OutputLoss

CHOICES = {"a": ("off", "on"), "b": ("off", "on"), "c": ("off", "on")}
WEIGHTS = {"p": 1.0}
LIMITS = Limits(memory_bytes=100, engine_bytes=1000, build_seconds=10.0)
SUMMARY = LatencySummary(8, *(1.0,) * 8)
ENGINE = Engine(Path("/e"), "s", "f", BuildRequest(Path("/m")), 1.0)


def tried(loss: float, **figures: float) -> Trial:
    uses = LIMITS.use({MEMORY: 50, ENGINE_SIZE: 500, BUILD_TIME: 5, **figures})
    is_good = loss <= 0.1 and all(use.is_kept for use in uses)
    return Trial(
        BuildRoute(),
        TrialOutcome.FEASIBLE if is_good else TrialOutcome.INFEASIBLE,
        ENGINE,
        (OutputLoss("p", "pair", "y", "linf", loss, 0.1),),
        (Comparison("p", (0.0,) * 4, -0.1, 0.01, SUMMARY, SUMMARY, 0.1),),
        limits=uses,
    )


@pytest.fixture
def study() -> optuna.Study:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler = optuna.samplers.TPESampler(seed=1, n_startup_trials=2)
    return optuna.create_study(sampler=sampler)


def test_every_complete_trial_has_the_same_constraints_in_the_same_order(
    study: optuna.Study,
) -> None:
    trials = (
        tried(0.01),
        tried(0.01, memory=1000.0),
        tried(1.0),
        tried(0.01, engine_size=1e30),
        tried(0.01, build_time=0.0),
        tried(0.01, build_time=10.0 + 1e-15),
    )
    for trial in trials:
        tell_trial(study, ask_trial(study, CHOICES), trial, 5.0, WEIGHTS)
    for told in study.trials:
        assert tuple(told.constraints) == (*CONSTRAINT_KEYS, MEMORY, ENGINE_SIZE, BUILD_TIME)
        assert all(abs(value) <= 6 for value in told.constraints.values())
    good, hungry, wrong, huge, instant, edge = study.trials
    assert all(value <= 0 for value in good.constraints.values())
    assert hungry.constraints[MEMORY] == pytest.approx(1)
    assert hungry.constraints["accuracy"] == pytest.approx(-1)
    assert wrong.constraints["accuracy"] == pytest.approx(1)
    assert huge.constraints[ENGINE_SIZE] == 6
    assert instant.constraints[BUILD_TIME] == -6
    assert (edge.constraints[BUILD_TIME] > 0) == (10.0 + 1e-15 > 10.0)
    records = finished_trials(study)
    assert [outcome_key(record) for record in records[:4]] == [
        *("feasible", OVER_LIMIT, "infeasible", OVER_LIMIT),
    ]
    assert records[1].over_limits == (MEMORY,)


def test_samplers_of_optuna_go_on_with_the_further_constraints(study: optuna.Study) -> None:
    for number in range(5):
        figures = {MEMORY: 1000.0 if number % 2 else 10.0}
        tell_trial(study, ask_trial(study, CHOICES), tried(0.01, **figures), 5.0, WEIGHTS)
    assert study.best_trial.constraints[MEMORY] <= 0
