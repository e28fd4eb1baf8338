"""The suite that a storage of trials must pass.

A storage is any ``optuna.storages.BaseStorage``; this suite covers what smart_tuner does with it,
Optuna's own ``optuna.testing.pytest_storages.StorageTestCase`` the rest::

    class TestMyStorage(StorageContract):
        @pytest.fixture
        def open_storage(self, tmp_path: Path) -> OpenStorage:
            return lambda: MyStorage(tmp_path / "file")
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.storages import BaseStorage
from optuna.trial import TrialState

from smart_tuner.engine.build import BuildRequest, Engine
from smart_tuner.errors import StudyMismatch
from smart_tuner.measure.latency import Comparison, LatencySummary
from smart_tuner.route.build_route import BuildRoute
from smart_tuner.samplers.registry import make_sampler
from smart_tuner.storages.ask import MAX_RETRIES, ask_trial, enqueue, fail_stale, running_trials
from smart_tuner.storages.history import best_feasible, finished_trials
from smart_tuner.storages.keys import CONSTRAINT_KEYS
from smart_tuner.storages.tell import tell_trial
from smart_tuner.trial.trial import Trial, TrialOutcome
from smart_tuner.validate.losses import OutputLoss

OpenStorage = Callable[[], BaseStorage]

CHOICES = {"a:b": ("on", "off"), "größe =|": ("1", "True", "None", " "), "only": ("x",)}
BASELINE_MS = 5.0
WEIGHTS = {"small": 1.0, "large": 3.0}

UNREACHED = {
    TrialOutcome.BUILD_FAILED: {"built": 1.0},
    TrialOutcome.NOT_APPLIED: {"applied": 1.0},
    TrialOutcome.RUN_FAILED: {"built": 0.0, "ran": 1.0, "applied": 0.0},
    TrialOutcome.TIMED_OUT: {"built": 1.0},
}


def compared(point: str, log_ratio: float, half_width: float = 0.01) -> Comparison:
    """A comparison with the given estimate."""
    summary = LatencySummary(9, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0)
    return Comparison(point, (log_ratio,) * 3, log_ratio, half_width, summary, summary, 1.0)


def tried(outcome: TrialOutcome, log_ratio: float | None = None, loss: float = 0.0) -> Trial:
    """A trial with one loss (epsilon 0.1) and, if a ratio is given, both points measured."""
    return Trial(
        route=BuildRoute(),
        outcome=outcome,
        losses=(OutputLoss("small", "0", "y", "l0", loss, 0.1),)
        if log_ratio is not None or loss
        else (),
        comparisons=() if log_ratio is None else tuple(compared(p, log_ratio) for p in WEIGHTS),
        seconds={"build": 1.5},
    )


class StorageContract:
    """Subclass it and provide the fixture ``open_storage``; each call is a fresh handle."""

    @pytest.fixture
    def open_storage(self) -> OpenStorage:
        """Open the same storage anew at every call."""
        raise NotImplementedError

    @pytest.fixture
    def study(self, open_storage: OpenStorage) -> optuna.Study:
        """A study with the default sampler."""
        sampler = make_sampler("default", CHOICES, {k: v[0] for k, v in CHOICES.items()}, 1)
        return optuna.create_study(storage=open_storage(), study_name="s", sampler=sampler)

    def test_a_trial_in_flight_is_seen_whole(
        self, study: optuna.Study, open_storage: OpenStorage
    ) -> None:
        """Another process sees every parameter, the route and the reason."""
        ask_trial(study, CHOICES)
        trial = ask_trial(study, CHOICES)
        seen = optuna.load_study(study_name="s", storage=open_storage()).trials[1]
        assert seen.state is TrialState.RUNNING
        assert seen.params == trial.params
        assert seen.params.keys() == CHOICES.keys()
        assert seen.user_attrs["route"]
        assert seen.user_attrs["reason"]

    @pytest.mark.parametrize("outcome", UNREACHED)
    def test_failures_are_pruned_without_a_value(
        self, study: optuna.Study, outcome: TrialOutcome
    ) -> None:
        """Samplers learn from PRUNED trials with constraints, never from FAIL."""
        told = tell_trial(study, ask_trial(study, CHOICES), tried(outcome), BASELINE_MS, WEIGHTS)
        assert told.state is TrialState.PRUNED
        assert told.values is None
        assert told.constraints == UNREACHED[outcome]
        assert finished_trials(study)[0].outcome is outcome

    def test_complete_trials_have_all_constraints(self, study: optuna.Study) -> None:
        """A violator is COMPLETE with its latency, and never the best."""
        good = tried(TrialOutcome.FEASIBLE, -0.1, loss=0.01)
        wrong = tried(TrialOutcome.INFEASIBLE, -0.5, loss=math.inf)
        for trial in (good, wrong):
            told = tell_trial(study, ask_trial(study, CHOICES), trial, BASELINE_MS, WEIGHTS)
            assert told.state is TrialState.COMPLETE
            assert set(told.constraints) == set(CONSTRAINT_KEYS)
        assert [trial.constraints["accuracy"] for trial in study.trials] == [-1.0, 6.0]
        assert study.best_trial.number == 0
        best = best_feasible(finished_trials(study))
        assert best is not None
        assert best.number == 0

    def test_the_value_is_the_weighted_mean_ratio(self, study: optuna.Study) -> None:
        """Milliseconds: baseline times exp of the weighted mean log ratio."""
        comparisons = (compared("large", 0.2), compared("small", -0.2, math.inf))
        trial = Trial(BuildRoute(), TrialOutcome.FEASIBLE, comparisons=comparisons)
        told = tell_trial(study, ask_trial(study, CHOICES), trial, BASELINE_MS, WEIGHTS)
        assert told.value == pytest.approx(BASELINE_MS * math.exp(0.1), rel=1e-12)
        assert told.user_attrs["half_width"] is None

    @pytest.mark.parametrize("ratio", [math.nan, math.inf, -math.inf, 1e6])
    def test_an_impossible_latency_is_a_failure(self, study: optuna.Study, ratio: float) -> None:
        """NaN, infinity and zero never become values; the reason is kept."""
        trial = tried(TrialOutcome.FEASIBLE, ratio)
        told = tell_trial(study, ask_trial(study, CHOICES), trial, BASELINE_MS, WEIGHTS)
        assert told.state is TrialState.PRUNED
        assert told.constraints == UNREACHED[TrialOutcome.RUN_FAILED]
        assert "latency" in finished_trials(study)[0].message

    def test_a_violator_without_latency_is_complete(self, study: optuna.Study) -> None:
        """It has the baseline's value, marked as not measured."""
        trial = tried(TrialOutcome.INFEASIBLE, loss=math.inf)
        told = tell_trial(study, ask_trial(study, CHOICES), trial, BASELINE_MS, WEIGHTS)
        assert (told.state, told.value) == (TrialState.COMPLETE, BASELINE_MS)
        assert finished_trials(study)[0].value_ms is None

    def test_an_unchanged_engine_has_the_baseline_s_value(self, study: optuna.Study) -> None:
        """Exactly, and without a measurement."""
        trial = Trial(BuildRoute(), TrialOutcome.FEASIBLE, unchanged=True)
        told = tell_trial(study, ask_trial(study, CHOICES), trial, BASELINE_MS, WEIGHTS)
        assert told.value == BASELINE_MS
        assert finished_trials(study)[0].unchanged

    def test_attributes_are_plain_json(self, study: optuna.Study) -> None:
        """No NaN or infinity token, no numpy type, bounded text."""
        engine = Engine(Path("e"), "0" * 64, "f", BuildRequest(Path("m")), 1.0)
        losses = (OutputLoss("p", "0", "y", "l0", math.inf, 0.1, "shape"),) * 100
        trial = Trial(
            BuildRoute(), TrialOutcome.INFEASIBLE, engine, losses, (), message="x" * 10_000
        )
        ask = ask_trial(study, CHOICES)
        told = tell_trial(study, ask, trial, BASELINE_MS, WEIGHTS, folder="trials/0")
        text = json.dumps(told.user_attrs, allow_nan=False)
        assert json.loads(text) == told.user_attrs
        assert len(text) < 10_000
        assert told.user_attrs["engine_fingerprint"] == "f"
        assert told.user_attrs["folder"] == "trials/0"

    def test_a_trial_is_told_once(self, study: optuna.Study, open_storage: OpenStorage) -> None:
        """Telling a finished trial again, here or elsewhere, changes nothing."""
        ask_trial(study, CHOICES)
        again = optuna.load_study(study_name="s", storage=open_storage())
        handles = [(s, running_trials(s)[0]) for s in (study, again)]
        for (handle, trial), ratio in zip(handles, (-0.1, 0.4), strict=True):
            told = tell_trial(
                handle, trial, tried(TrialOutcome.FEASIBLE, ratio), BASELINE_MS, WEIGHTS
            )
            assert told.value == pytest.approx(BASELINE_MS * math.exp(-0.1))
        assert len(study.trials) == 1

    def test_an_interrupted_trial_is_tried_again(
        self, study: optuna.Study, open_storage: OpenStorage
    ) -> None:
        """Its route comes next, a few times at most; the closed trial counts as nothing."""
        ask_trial(study, CHOICES)
        first = ask_trial(study, CHOICES).params
        for _ in range(MAX_RETRIES):
            again = optuna.load_study(study_name="s", storage=open_storage())
            fail_stale(again)
            queued = [ask_trial(again, CHOICES).params for _ in running_trials(study) or (0, 1)]
            assert first in queued
        fail_stale(study)
        assert not [t for t in study.trials if t.state in (TrialState.RUNNING, TrialState.WAITING)]
        assert finished_trials(study) == ()

    def test_queued_routes_come_first(self, study: optuna.Study) -> None:
        """Missing knobs are default; what the space lacks is named and left out."""
        values: dict[str, Any] = {"a:b": "off", "gone": "1", "only": "y"}
        notes = enqueue(study, values, "asked for", CHOICES)
        trial = ask_trial(study, CHOICES)
        assert trial.params == {"a:b": "off", "größe =|": "1", "only": "x"}
        assert trial.user_attrs["reason"] == "asked for"
        assert [note.split()[0] for note in notes] == ["-gone=1", "-only=y"]

    def test_changed_choices_are_refused(self, study: optuna.Study) -> None:
        """Before anything is written."""
        ask_trial(study, CHOICES)
        with pytest.raises(StudyMismatch, match="a:b"):
            ask_trial(study, {**CHOICES, "a:b": ("on", "off", "auto")})
        assert len(study.trials) == 1
