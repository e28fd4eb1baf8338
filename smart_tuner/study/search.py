"""The search: ask, evaluate, tell, until the budget for it is spent."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from smart_tuner.errors import SearchExhausted
from smart_tuner.measure.stop_rule import StopRule
from smart_tuner.storages.ask import ask_trial, fail_stale, route_of, running_trials
from smart_tuner.storages.history import best_feasible, finished_trials
from smart_tuner.storages.tell import tell_trial, value_of
from smart_tuner.study.events import Note, TrialFinished, TrialStarted
from smart_tuner.trial.evaluate import RESULT_FILE
from smart_tuner.trial.record import trial_from_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    import optuna

    from smart_tuner.study.budget import Budget
    from smart_tuner.study.events import Listener
    from smart_tuner.study.folder import StudyFolder
    from smart_tuner.trial.evaluate import Evaluator
    from smart_tuner.trial.trial import Trial

SPENT = "spent_seconds"
BASELINE_MS = "baseline_ms"
"""Study attributes: seconds spent by all sessions; the baseline median, frozen by the first."""

LEAST_TRIAL_SECONDS = 20.0
"""A trial is never given a shorter deadline than this because the budget ends."""


@dataclass(frozen=True, slots=True)
class Search:
    """One study's search.

    Attributes:
        study: The Optuna study; the journal behind it is the truth.
        folder: Where trials lie.
        evaluator: Tries routes.
        choices: Choices by knob name, the default first.
        weights: Weight by workload point.
        baseline_ms: The study's frozen baseline latency.
        trial_seconds: Deadline of one trial.
        listener: Hears what happens.
    """

    study: optuna.Study
    folder: StudyFolder
    evaluator: Evaluator
    choices: Mapping[str, tuple[str, ...]]
    weights: Mapping[str, float]
    baseline_ms: float
    trial_seconds: float
    listener: Listener

    def recover(self) -> None:
        """Bring the journal up to date after a kill.

        A complete result whose trial is still running in the journal is told, once; what else is
        running was lost, and its route is queued again.
        """
        for trial in running_trials(self.study):
            number = trial.number
            result = self.folder.trial(number) / RESULT_FILE
            if result.is_file():
                self._tell(trial, trial_from_json(json.loads(result.read_bytes())))
                self.listener(Note(f"trial {number} had finished before the interruption: kept"))
        for number in fail_stale(self.study):
            self.listener(Note(f"trial {number} was interrupted: its route is tried again"))

    def run(self, budget: Budget) -> None:
        """Try routes until the search's share of the budget is spent or nothing is left to try."""
        rule = StopRule()
        while True:
            records = finished_trials(self.study)
            seconds = [record.seconds.get("total", 0.0) for record in records]
            if not budget.allows_another(len(records), seconds):
                return
            try:
                trial = ask_trial(self.study, self.choices)
            except SearchExhausted as end:
                self.listener(Note(str(end)))
                return
            self._try(trial, rule, budget)

    def _try(self, trial: optuna.Trial, rule: StopRule, budget: Budget) -> None:
        route = route_of(trial.params, self.choices)
        self.listener(TrialStarted(trial.number, route, str(trial.user_attrs.get("reason", ""))))
        folder = self.folder.trial(trial.number)
        folder.mkdir(parents=True, exist_ok=True)
        deadline = min(self.trial_seconds, max(LEAST_TRIAL_SECONDS, budget.search_left))
        tried = self.evaluator.evaluate(route, folder, rule, deadline_seconds=deadline)
        self._tell(trial, tried)
        self.study.set_user_attr(SPENT, budget.spent)
        self.listener(self._finished(trial.number, tried, budget))

    def _tell(self, trial: optuna.Trial, tried: Trial) -> None:
        tell_trial(
            self.study,
            trial,
            tried,
            self.baseline_ms,
            self.weights,
            folder=f"trials/{trial.number}",
        )

    def _finished(self, number: int, tried: Trial, budget: Budget) -> TrialFinished:
        value = value_of(tried, self.baseline_ms, self.weights)
        records = finished_trials(self.study)
        record = next((item for item in records if item.number == number), None)
        best = best_feasible(records)
        best_ms = best.value_ms if best and best.value_ms else self.baseline_ms
        return TrialFinished(
            number=number,
            route=tried.route,
            outcome=record.outcome if record else tried.outcome,
            gain=None if value is None else self.baseline_ms / value,
            half_width=record.half_width if record else None,
            unchanged=tried.unchanged,
            message=record.message if record else tried.message,
            incumbent_gain=self.baseline_ms / best_ms,
            spent_seconds=budget.spent,
            budget_seconds=budget.seconds,
        )


def frozen_baseline_ms(
    study: optuna.Study, medians: Mapping[str, float], weights: Mapping[str, float]
) -> float:
    """The baseline latency that values of this study are counted from.

    The first session writes it; later ones read it, so that values of all sessions compare.

    Args:
        study: The study.
        medians: Baseline median in milliseconds by workload point.
        weights: Weight by workload point.
    """
    kept = study.user_attrs.get(BASELINE_MS)
    if isinstance(kept, float) and kept > 0:
        return kept
    total = sum(weights.values())
    value = math.exp(sum(weights[p] * math.log(medians[p]) for p in weights) / total)
    study.set_user_attr(BASELINE_MS, value)
    return value
