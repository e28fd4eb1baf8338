"""What a study is doing at this moment, seen from outside."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import TYPE_CHECKING

from optuna.trial import TrialState

from smart_tuner.route.build_route import BuildRoute
from smart_tuner.storages.keys import REASON
from smart_tuner.study.files.names import BASELINE_MS
from smart_tuner.study.search.purpose import purpose_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import optuna
    from optuna.trial import FrozenTrial

    from smart_tuner.storages.history import TrialRecord
    from smart_tuner.study.files.folder import StudyFolder

PREPARING, SEARCHING, CONFIRMING = "preparing", "searching", "confirming"


@dataclass(frozen=True, slots=True)
class InFlight:
    """A trial that is being tried, or was when the study was killed.

    Attributes:
        number: Trial number.
        route: Canonical text of its route; empty for the default.
        why: Why it is tried, in words for people.
        seconds: For how long so far.
    """

    number: int
    route: str
    why: str
    seconds: float


def in_flight(study: optuna.Study, records: Sequence[TrialRecord]) -> tuple[InFlight, ...]:
    """The trials that are being tried.

    Args:
        study: The study.
        records: Its finished trials.
    """
    running = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
    return tuple(_in_flight(trial, records) for trial in running)


def _in_flight(trial: FrozenTrial, records: Sequence[TrialRecord]) -> InFlight:
    choices = {name: getattr(kept, "choices", ("",)) for name, kept in trial.distributions.items()}
    route = BuildRoute.of(trial.params, {name: values[0] for name, values in choices.items()})
    why = str(purpose_of(route, str(trial.user_attrs.get(REASON, "")), records))
    return InFlight(trial.number, str(route), why, _since(trial.datetime_start))


def seconds_since_last(study: optuna.Study) -> float:
    """Seconds since a trial ended; 0 before the first one."""
    ends = [trial.datetime_complete for trial in study.get_trials(deepcopy=False)]
    return _since(max((end for end in ends if end), default=None))


def _since(then: datetime.datetime | None) -> float:
    """Seconds since a moment as Optuna keeps it: the local time, without its zone."""
    if then is None:
        return 0.0
    now = datetime.datetime.now().astimezone()
    return max(0.0, (now - then.astimezone()).total_seconds())


def phase_of(study: optuna.Study | None, folder: StudyFolder) -> str:
    """What a running study is at, as far as its folder shows it."""
    if study is None or study.user_attrs.get(BASELINE_MS) is None:
        return PREPARING
    is_trying = bool(study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)))
    return CONFIRMING if folder.finalists.is_dir() and not is_trying else SEARCHING
