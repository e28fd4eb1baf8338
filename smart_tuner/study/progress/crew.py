"""The workers of one study: who is gone, who is still trying something, and whether to go on."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from smart_tuner.storages.ask import running_trials
from smart_tuner.storages.keys import WORKER
from smart_tuner.storages.leases import Observer
from smart_tuner.study.files.names import SPENT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import optuna

    from smart_tuner.study.progress.budget import Budget

STOP = "stop"
"""Study attribute: why nobody is to begin another trial; empty while the search is on."""


def _nothing() -> None: ...


@dataclass(slots=True)
class Crew:
    """This worker and what it knows of the others.

    Attributes:
        name: Of this worker; empty if it is certain that there are no others.
        leads: This is the session that concludes the study; it tells what others tried.
        observer: Judges signs of life.
        on_look: Called whenever this worker looks around.
    """

    name: str = ""
    leads: bool = False
    observer: Observer = field(default_factory=Observer)
    on_look: Callable[[], None] = _nothing

    def lost_trials(self, study: optuna.Study) -> tuple[optuna.Trial, ...]:
        """Trials in flight that nobody tries any more; call it between two trials of one's own."""
        return self._in_flight(study, lost=True)

    def trials_of_others(self, study: optuna.Study) -> tuple[optuna.Trial, ...]:
        """Trials that other workers are trying."""
        return self._in_flight(study, lost=False)

    def is_stopped(self, study: optuna.Study) -> bool:
        """Whether the leading session has ended the search; only others ask."""
        return not self.leads and bool(study.user_attrs.get(STOP, ""))

    def sweep(self, study: optuna.Study, folder: Path) -> None:
        """Remove what workers that are gone have left.

        Args:
            study: The study.
            folder: Holds a folder for each worker, by its name.
        """
        places = [place for place in folder.glob("*") if place.is_dir()]
        attributes = study.user_attrs if places else {}
        for place in places:
            if self.observer.is_gone(place.name, attributes):
                shutil.rmtree(place, ignore_errors=True)

    def settle(self, study: optuna.Study, budget: Budget) -> None:
        """Agree on the time that was spent: the most that any worker knows of."""
        kept = float(study.user_attrs.get(SPENT, 0.0))
        budget.catch_up(kept)
        if budget.spent > kept:
            study.set_user_attr(SPENT, budget.spent)

    def _in_flight(self, study: optuna.Study, *, lost: bool) -> tuple[optuna.Trial, ...]:
        trials = running_trials(study)
        if not trials:
            return ()
        attributes = study.user_attrs if self.name else {}
        return tuple(
            trial
            for trial in trials
            if self._is_lost(str(trial.user_attrs.get(WORKER, "")), attributes) is lost
        )

    def _is_lost(self, worker: str, attributes: dict[str, object]) -> bool:
        return worker == self.name or self.observer.is_gone(worker, attributes)
