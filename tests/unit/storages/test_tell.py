from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import optuna
import pytest
from optuna.distributions import CategoricalDistribution
from optuna.trial import TrialState

from smart_tuner.engine.build import BuildRequest, Engine
from smart_tuner.route.build_route import BuildRoute
from smart_tuner.storages.ask import ask_trial, running_trials
from smart_tuner.storages.history import best_feasible, finished_trials
from smart_tuner.storages.journal import open_study
from smart_tuner.storages.keys import CONSTRAINT_KEYS
from smart_tuner.storages.tell import constraints_of, tell_trial, value_of
from smart_tuner.testing.storage_contract import compared, tried
from smart_tuner.trial.trial import Trial, TrialOutcome

CHOICES = {"a": ("1", "2"), "b": ("x", "y")}
WEIGHTS = {"small": 1.0, "large": 3.0}
ENGINE = Engine(Path("e"), "0" * 64, "f", BuildRequest(Path("m")), 1.0)


def test_what_was_reached_is_told() -> None:
    built = replace(tried(TrialOutcome.TIMED_OUT), engine=ENGINE)
    assert constraints_of(built, TrialOutcome.TIMED_OUT) == {"built": 0, "ran": 1, "applied": 0}
    assert constraints_of(built, TrialOutcome.NOT_APPLIED) == {"built": 0, "applied": 1}


@pytest.mark.parametrize("loss", [0.0, 0.1, 0.1000000000000001, 5.0])
def test_accuracy_is_on_the_outcome_s_side(loss: float) -> None:
    outcome = TrialOutcome.FEASIBLE if loss <= 0.1 else TrialOutcome.INFEASIBLE
    accuracy = constraints_of(tried(outcome, 0.0, loss), outcome)["accuracy"]
    assert (accuracy <= 0) is (outcome is TrialOutcome.FEASIBLE)


def test_accuracy_without_losses() -> None:
    feasible, wrong = (tried(o) for o in (TrialOutcome.FEASIBLE, TrialOutcome.INFEASIBLE))
    assert constraints_of(feasible, feasible.outcome)["accuracy"] == 0
    assert constraints_of(wrong, wrong.outcome)["accuracy"] == 6


def test_a_point_that_was_not_measured_leaves_no_value() -> None:
    trial = Trial(BuildRoute(), TrialOutcome.FEASIBLE, comparisons=(compared("small", 0.0),))
    assert value_of(trial, 5.0, WEIGHTS) is None
    study = optuna.create_study()
    told = tell_trial(study, ask_trial(study, CHOICES), trial, 5.0, WEIGHTS)
    assert told.state is TrialState.PRUNED
    assert told.user_attrs["message"] == "no latency was measured at large"


def test_constraints_keep_their_order(tmp_path: Path) -> None:
    study = open_study(tmp_path / "journal.log", "s", None, create=True)
    told = tell_trial(
        study, ask_trial(study, CHOICES), tried(TrialOutcome.FEASIBLE, 0.0), 5.0, WEIGHTS
    )
    assert tuple(told.constraints) == CONSTRAINT_KEYS


def test_an_append_cut_anywhere_can_be_told_again(tmp_path: Path) -> None:
    journal = tmp_path / "journal.log"
    study = open_study(journal, "s", None, create=True)
    trial = ask_trial(study, CHOICES)
    start = journal.stat().st_size
    expected = tell_trial(study, trial, tried(TrialOutcome.FEASIBLE, 0.1), 5.0, WEIGHTS)
    whole = journal.read_bytes()
    for end in range(start, len(whole) - 1, 101):
        journal.write_bytes(whole[:end])
        study = open_study(journal, "s", None, create=False)
        (running,) = running_trials(study)
        told = tell_trial(study, running, tried(TrialOutcome.FEASIBLE, 0.1), 5.0, WEIGHTS)
        assert told.value == expected.value
        assert told.user_attrs == expected.user_attrs
        assert told.constraints == expected.constraints


def test_trials_that_others_put_in_are_read_by_state_and_constraints() -> None:
    study = optuna.create_study()
    space = {"a": CategoricalDistribution(("1", "2"))}
    states = {"state": TrialState.PRUNED}
    for extra in (
        {"value": 2.0},
        {"value": 1.0, "constraints": {"0": 0.5}},
        {**states, "constraints": {"built": 1.0}},
        {**states, "constraints": {"applied": 1.0}},
        {**states, "constraints": {"ran": 1.0}},
        states,
    ):
        study.add_trial(optuna.create_trial(params={"a": "2"}, distributions=space, **extra))  # type: ignore[arg-type]
    records = finished_trials(study)
    assert [record.outcome.value for record in records] == [
        *("feasible", "infeasible", "build_failed", "not_applied", "run_failed", "build_failed")
    ]
    assert records[0].route == BuildRoute((("a", "2"),))
    assert best_feasible(records) == records[0]
    assert best_feasible(()) is None
