"""The search: ask, evaluate, tell, until the budget for it is spent."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from smart_tuner.errors import SearchExhausted, UserInputError
from smart_tuner.knobs.text import many
from smart_tuner.measure.stop_rule import StopRule
from smart_tuner.storages.ask import ask_within, fail_stale, route_of
from smart_tuner.storages.history import finished_trials
from smart_tuner.storages.keys import REASON
from smart_tuner.storages.tell import tell_trial
from smart_tuner.study.files.attach import attach_log
from smart_tuner.study.progress.crew import Crew
from smart_tuner.study.progress.events import Note, TrialsKept, TrialStarted
from smart_tuner.study.progress.trial_end import trial_finished
from smart_tuner.study.proof.finalists import shortlist
from smart_tuner.study.search.purpose import purpose_of
from smart_tuner.study.search.structure import StructureQuestion
from smart_tuner.study.search.timing_cache import CacheQuestion
from smart_tuner.trial.evaluate import RESULT_FILE, drop_engine, keep_trial
from smart_tuner.trial.record import remove_leftovers, trial_from_json
from smart_tuner.trial.trial import Trial, TrialOutcome

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import optuna

    from smart_tuner.route.build_route import BuildRoute
    from smart_tuner.storages.history import TrialRecord
    from smart_tuner.study.files.folder import StudyFolder
    from smart_tuner.study.progress.budget import Budget
    from smart_tuner.study.progress.events import Listener
    from smart_tuner.trial.evaluate import Evaluator

LOOK_SECONDS = 0.25
"""How often a worker looks around while it waits for others."""


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
        default: The default route as a trial: it is the baseline, so nothing is built for it.
        missing: Knob and value of choices that this machine does not offer.
        trial_seconds: Deadline of one trial.
        listener: Hears what happens.
        min_gain: The smallest gain that ships.
        rule: When a route is measured enough.
        crew: Who else works in the study.
        heard: Trials whose end the listener knows.
        attaches: Logs are kept as artifacts too.
    """

    study: optuna.Study
    folder: StudyFolder
    evaluator: Evaluator
    choices: Mapping[str, tuple[str, ...]]
    weights: Mapping[str, float]
    baseline_ms: float
    default: Trial
    missing: frozenset[tuple[str, str]]
    trial_seconds: float
    listener: Listener
    min_gain: float
    rule: StopRule = field(default_factory=StopRule)
    crew: Crew = field(default_factory=Crew)
    heard: set[int] = field(default_factory=set)
    attaches: bool = False

    def recover(self) -> None:
        """Bring the journal up to date after a kill.

        A complete result whose trial is still running in the journal is told, once; what else is
        running was lost, and its route is queued again. Trials that the journal does not know
        are not counted: without it nobody knows what they were measured against.
        """
        self._timing_cache.recall()
        self._structure.recall()
        begun = len(self.study.get_trials(deepcopy=False))
        lost = sum(number >= begun for number in self.folder.trial_numbers())
        if lost:
            text = f"{many(lost, 'trial')} in {self.folder.root} {'is' if lost == 1 else 'are'}"
            why = "not in the journal, which was cut or replaced: not counted as tried."
            self.listener(Note(f"{text} {why}"))
        self._bury()
        if records := finished_trials(self.study):
            self.listener(TrialsKept(records, self.baseline_ms))
            self.heard.update(record.number for record in records)

    def run(self, budget: Budget) -> None:
        """Try routes until the search's share of the budget is spent or nothing is left to try.

        That share is all of it as long as no route seems worth confirming.
        While others try what would otherwise be left, this waits: one of them may be lost.
        """
        while True:
            self._look_around(budget)
            records = finished_trials(self.study)
            seconds = [record.seconds.get("total", 0.0) for record in records]
            budget.keeps_back = bool(shortlist(records, self.baseline_ms, self.min_gain))
            if self.crew.is_stopped(self.study) or not budget.allows_another(seconds):
                return
            try:
                asked = (self.study, self.choices, budget.trials, self.crew.name)
                trial, end = ask_within(*asked), ""
            except SearchExhausted as error:
                trial, end = None, str(error)
            if trial is not None:
                self._announce(trial, records)
                self._try(trial, budget, seconds)
            elif not self._await_change(budget):
                if end:
                    self.listener(Note(end))
                return

    def await_others(self, budget: Budget) -> None:
        """Wait until no other worker tries anything, so that nothing disturbs what follows."""
        others = self.crew.trials_of_others(self.study)
        if others:
            self.listener(Note(f"waiting for {many(len(others), 'trial')} of other workers"))
        while self.crew.trials_of_others(self.study):
            self._await_change(budget)
        self._look_around(budget)

    def _await_change(self, budget: Budget) -> bool:
        """Wait until a trial of another worker ends; false if there is none, nor one lost."""
        others = {trial.number for trial in self.crew.trials_of_others(self.study)}
        if not others:
            return bool(self.crew.lost_trials(self.study))
        while {trial.number for trial in self.crew.trials_of_others(self.study)} == others:
            time.sleep(LOOK_SECONDS)
            self._look_around(budget)
        return True

    def _look_around(self, budget: Budget) -> None:
        """Close what was lost, and tell what others have finished."""
        self.crew.on_look()
        self._bury()
        if not self.crew.leads:
            return
        records = finished_trials(self.study)
        for record in records:
            if record.number not in self.heard:
                self.heard.add(record.number)
                self.listener(trial_finished(record, records, self.baseline_ms, budget))

    def _bury(self) -> None:
        """Tell or close each trial that nobody tries any more."""
        for trial in self.crew.lost_trials(self.study):
            place = self.folder.trial(trial.number)
            tried = self._result_of(trial)
            if tried is not None:
                self._tell(trial, tried)
                text = f"trial {trial.number} had finished before the interruption: kept"
                self.listener(Note(text))
            else:
                self._close(trial.number, "was interrupted")
            drop_engine(place)
            remove_leftovers(place)

    def _result_of(self, trial: optuna.Trial) -> Trial | None:
        """What the trial's folder holds, if it is whole and of this very route."""
        try:
            data = json.loads((self.folder.trial(trial.number) / RESULT_FILE).read_bytes())
            tried = trial_from_json(data)
        except (OSError, ValueError, UserInputError):
            return None
        return tried if tried.route == route_of(trial.params, self.choices) else None

    def _close(self, number: int, why: str) -> None:
        for closed in fail_stale(self.study, (number,)):
            self.listener(Note(f"trial {closed} {why}: its route is tried again"))

    @property
    def _timing_cache(self) -> CacheQuestion:
        return CacheQuestion(self.study, self.evaluator, self.weights)

    @property
    def _structure(self) -> StructureQuestion:
        return StructureQuestion(self.study, self.evaluator, self.weights)

    def _announce(self, trial: optuna.Trial, records: Sequence[TrialRecord]) -> None:
        route = route_of(trial.params, self.choices)
        said = str(trial.user_attrs.get(REASON, ""))
        why = str(purpose_of(route, said, records))
        self.listener(TrialStarted(trial.number, route, said, why))

    def _try(self, trial: optuna.Trial, budget: Budget, seconds: Sequence[float]) -> None:
        route = route_of(trial.params, self.choices)
        tried = self._known(route)
        deadline = budget.trial_deadline(seconds, self.trial_seconds)
        folder = self.folder.trial(trial.number)
        if tried is not None:
            keep_trial(tried, folder)
        else:
            folder.mkdir(parents=True, exist_ok=True)
            tried = self.evaluator.evaluate(route, folder, self.rule, deadline_seconds=deadline)
            if self._timing_cache.is_open(tried) and budget.affords_question:
                tried = self._probed(tried, budget, seconds)
            drop_engine(folder)
            if said := self._structure.learn(tried):
                self.listener(Note(said))
        is_over = deadline < self.trial_seconds and not budget.search_left(seconds)
        if is_over and tried.outcome is TrialOutcome.TIMED_OUT:
            # The budget ended, not the patience with this route: nothing is known about it.
            self._close(trial.number, "did not fit into what was left of the budget")
        else:
            self._tell(trial, tried)
            self._tell_listener(trial.number, budget)
        self.crew.settle(self.study, budget)

    def _probed(self, seeded: Trial, budget: Budget, seconds: Sequence[float]) -> Trial:
        """Ask whether timings may be shared; if not, the trial is the one without them."""
        deadline = budget.trial_deadline(seconds, self.trial_seconds)
        place = self.folder.engines / "timing_cache_probe"
        probe = self._timing_cache.ask(seeded, place, self.rule, deadline)
        drop_engine(place)
        if probe is None:
            return seeded
        self.listener(Note(probe.sentence))
        build = probe.cold.seconds.get("build", 0.0)
        budget.cold_build_seconds = max(budget.cold_build_seconds, build)
        if not probe.difference:
            return seeded
        # From now on trials cost as much as fresh builds.
        budget.cold_build_seconds = 0.0
        return probe.cold

    def _known(self, route: BuildRoute) -> Trial | None:
        """The outcome of a route that need not be tried; ``None`` for all others.

        That is the default, which has no effect on the baseline by itself, and a route that this
        machine does not offer.
        """
        if not route.settings:
            return self.default
        absent = ", ".join(f"{k}={v}" for k, v in route.settings if (k, v) in self.missing)
        if not absent:
            return None
        return Trial(route, TrialOutcome.NOT_APPLIED, message=f"not offered here: {absent}")

    def _tell(self, trial: optuna.Trial, tried: Trial) -> None:
        if self.attaches:
            attach_log(self.study, trial, self.folder)
        tell_trial(
            self.study,
            trial,
            tried,
            self.baseline_ms,
            self.weights,
            folder=f"trials/{trial.number}",
        )

    def _tell_listener(self, number: int, budget: Budget) -> None:
        """Say how this worker's trial ended, unless others had given the worker up."""
        records = finished_trials(self.study)
        record = next((item for item in records if item.number == number), None)
        if record is None:
            text = f"trial {number} was given up by other workers before it ended; nothing is lost"
            self.listener(Note(text))
        elif number not in self.heard:
            self.heard.add(number)
            self.listener(trial_finished(record, records, self.baseline_ms, budget))
