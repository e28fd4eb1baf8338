"""Trials as they will be once a transaction is through: what it reads while it is gathered."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import FrozenTrial, TrialState

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from optuna.distributions import BaseDistribution


@dataclass(slots=True)
class Change:
    """One trial that changes.

    Attributes:
        trial: As it will be.
        is_new: The storage does not have it yet.
        params: Names of new parameters.
        user: Keys of user attributes that were set.
        system: Keys of system attributes that were set.
        is_state_new: Its state, values or times changed.
    """

    trial: FrozenTrial
    is_new: bool = False
    params: dict[str, float] = field(default_factory=dict)
    user: set[str] = field(default_factory=set)
    system: set[str] = field(default_factory=set)
    is_state_new: bool = False


@dataclass(slots=True)
class Overlay:
    """Changes by trial id, in the order in which the trials were first touched."""

    changes: dict[int, Change] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Change]:
        return iter(self.changes.values())

    def create(self, trial_id: int, number: int, template: FrozenTrial | None) -> FrozenTrial:
        """Begin a trial, running unless the template says otherwise."""
        trial = _running() if template is None else copy.deepcopy(template)
        trial.number = number
        trial._trial_id = trial_id  # noqa: SLF001, as Optuna's storages do
        made = Change(trial, is_new=True, is_state_new=True)
        for name, distribution in trial.distributions.items():
            made.params[name] = distribution.to_internal_repr(trial.params[name])
        made.user.update(trial.user_attrs)
        made.system.update(trial.system_attrs)
        self.changes[trial_id] = made
        return trial

    def touch(self, kept: FrozenTrial) -> Change:
        """The change of a trial, begun if there is none; a finished trial cannot change.

        Args:
            kept: The trial as the storage has it.

        Raises:
            UpdateFinishedTrialError: It is finished.
        """
        change = self.changes.get(kept._trial_id)  # noqa: SLF001
        if change is None:
            change = Change(copy.deepcopy(kept))
        if change.trial.state.is_finished():
            msg = f"Trial {change.trial.number} is finished and cannot change any more."
            raise UpdateFinishedTrialError(msg)
        self.changes[kept._trial_id] = change  # noqa: SLF001
        return change


def set_param(change: Change, name: str, internal: float, distribution: BaseDistribution) -> None:
    """Give a changing trial a parameter."""
    change.trial.params[name] = distribution.to_external_repr(internal)
    change.trial.distributions[name] = distribution
    change.params[name] = internal


def set_user(change: Change, key: str, value: Any) -> None:
    """Give a changing trial a user attribute."""
    change.trial.user_attrs[key] = value
    change.user.add(key)


def set_system(change: Change, key: str, value: Any) -> None:
    """Give a changing trial a system attribute."""
    change.trial.system_attrs[key] = value
    change.system.add(key)


def set_state(change: Change, state: TrialState, values: Sequence[float] | None) -> bool:
    """Move a changing trial on.

    Returns:
        False for a trial that was to begin and runs already.
    """
    trial = change.trial
    if state is TrialState.RUNNING and trial.state is not TrialState.WAITING:
        return False
    trial.state = state
    if values is not None:
        trial.values = list(values)
    if state is TrialState.RUNNING:
        trial.datetime_start = datetime.now()  # noqa: DTZ005, Optuna keeps local time
    if state.is_finished():
        trial.datetime_complete = datetime.now()  # noqa: DTZ005
    change.is_state_new = True
    return True


def _running() -> FrozenTrial:
    return FrozenTrial(
        number=-1,
        state=TrialState.RUNNING,
        value=None,
        datetime_start=datetime.now(),  # noqa: DTZ005
        datetime_complete=None,
        params={},
        distributions={},
        user_attrs={},
        system_attrs={},
        intermediate_values={},
        trial_id=-1,
    )
