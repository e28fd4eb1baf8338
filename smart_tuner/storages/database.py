"""A study in a PostgreSQL database, for workers on many machines.

The tables are Optuna's, so its dashboard and its own commands read them. What differs is how trials
are written: all that belongs to one proposal or one result in a single transaction, under a lock
of the study, in as many round trips for 250 knobs as for one. So a kill leaves either no trial or
one with all its parameters, and workers ask one after the other, each seeing the others' routes.
"""

from __future__ import annotations

import copy
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import optuna
from optuna.exceptions import StorageInternalError
from optuna.storages._cached_storage import _CachedStorage
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from typing_extensions import override

from smart_tuner.errors import EnvironmentNotFit, StudyBusy, UserInputError
from smart_tuner.storages.address import DRIVER
from smart_tuner.storages.database_rows import next_trial_id, write_change
from smart_tuner.storages.database_tables import LOCK_SPACE, Tables
from smart_tuner.storages.overlay import Overlay, set_param, set_state, set_system, set_user

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence

    from optuna.distributions import BaseDistribution
    from optuna.study import StudyDirection
    from optuna.trial import FrozenTrial, TrialState

    from smart_tuner.storages.overlay import Change

LOCK_SECONDS = 600
"""How long a worker waits for its turn. The server lets go of the lock of a worker that is gone, and
with thousands of trials the proposals of many workers before it may take minutes."""


def open_database_study(
    url: str, name: str, sampler: optuna.samplers.BaseSampler | None, *, create: bool
) -> optuna.Study:
    """Open a study in a database.

    Args:
        url: Address of the database, without password.
        name: The study's name there.
        sampler: Proposes the next routes; ``None`` for reading only.
        create: Create tables and study where they are missing.

    Raises:
        UserInputError: There is no such study.
        EnvironmentNotFit: The database does not answer, or psycopg is not installed.
    """
    with database_errors(url):
        try:
            storage = DatabaseStorage(url, create=create)
        except ImportError as error:
            msg = "A database needs psycopg: pip install 'smart-tuner[postgresql]'."
            raise EnvironmentNotFit(msg) from error
        except RuntimeError as error:
            # Optuna's words for tables of another version of it.
            msg = f"The database {url} cannot be used: {error}"
            raise EnvironmentNotFit(msg) from error
        names = [study.study_name for study in storage.get_all_studies()]
        if name in names:
            return optuna.load_study(study_name=name, storage=storage, sampler=sampler)
        if not create:
            msg = f"No study {name!r} in {url}; is it the database that the study began in?"
            raise UserInputError(msg)
        return optuna.create_study(
            study_name=name, storage=storage, sampler=sampler, direction="minimize"
        )


@contextmanager
def database_errors(url: str) -> Iterator[None]:
    """Turn a database that went away, or never was there, into one line.

    Raises:
        EnvironmentNotFit: Names the address and the remedy.
        StudyBusy: Other workers held the study for ten minutes.
    """
    try:
        yield
    except (StorageInternalError, DBAPIError) as error:
        cause = error if isinstance(error, DBAPIError) else error.__cause__
        reason = str(getattr(cause, "orig", None) or cause or error).strip().splitlines()
        if "lock timeout" in reason[0]:
            msg = f"Other workers have held the study in {url} for ten minutes; use fewer of them."
            raise StudyBusy(msg) from error
        msg = (
            f"The database {url} cannot be used ({reason[0]}): start it or fix the address, then run "
            "the same command again: nothing finished is lost."
        )
        raise EnvironmentNotFit(msg) from error


class DatabaseStorage(_CachedStorage):
    """Optuna's tables in PostgreSQL, with writes that can be gathered.

    One thread at a time may gather; a thread of its own takes a storage of its own.

    Args:
        url: Address of the database, without password.
        create: Make the tables where they are missing.
    """

    def __init__(self, url: str, *, create: bool) -> None:
        self.url = url
        scheme = urlsplit(url).scheme
        self._tables = Tables(f"{DRIVER}{url.removeprefix(scheme)}", create=create)
        super().__init__(self._tables)
        self._study_id = 0
        self._overlay: Overlay | None = None
        self._past: dict[int, FrozenTrial] = {}

    @contextmanager
    def gathered(self) -> Iterator[None]:
        """Hold the study alone; what is set on trials inside is written at the end, or not at all.

        What was read inside still holds when it is written. Gatherings do not nest.

        Raises:
            EnvironmentNotFit: The database went away.
            StudyBusy: Other workers held the study for ten minutes.
        """
        lock = text(
            f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'; "
            f"SELECT pg_advisory_xact_lock({LOCK_SPACE}, {self._study_id})"
        )
        with database_errors(self.url), self._tables.engine.begin() as connection:
            connection.execute(lock)
            self._tables.connection = connection
            try:
                past = super().get_all_trials(self._study_id, deepcopy=False)
                self._past = {trial._trial_id: trial for trial in past}  # noqa: SLF001
                self._overlay = Overlay()
                yield
                for change in self._overlay:
                    write_change(connection, self._study_id, change)
            finally:
                self._overlay, self._tables.connection, self._past = None, None, {}

    @override
    def create_new_study(
        self, directions: Sequence[StudyDirection], study_name: str | None = None
    ) -> int:
        self._study_id = super().create_new_study(directions, study_name)
        return self._study_id

    @override
    def get_study_id_from_name(self, study_name: str) -> int:
        self._study_id = super().get_study_id_from_name(study_name)
        return self._study_id

    @override
    def create_new_trial(self, study_id: int, template_trial: FrozenTrial | None = None) -> int:
        if self._overlay is None or self._tables.connection is None:
            return super().create_new_trial(study_id, template_trial)
        trial_id = next_trial_id(self._tables.connection)
        number = len(self._past) + sum(change.is_new for change in self._overlay)
        self._overlay.create(trial_id, number, template_trial)
        return trial_id

    @override
    def set_trial_param(
        self,
        trial_id: int,
        param_name: str,
        param_value_internal: float,
        distribution: BaseDistribution,
    ) -> None:
        change = self._change(trial_id)
        if change is None:
            super().set_trial_param(trial_id, param_name, param_value_internal, distribution)
        else:
            set_param(change, param_name, param_value_internal, distribution)

    @override
    def set_trial_user_attr(self, trial_id: int, key: str, value: Any) -> None:
        change = self._change(trial_id)
        if change is None:
            super().set_trial_user_attr(trial_id, key, value)
        else:
            set_user(change, key, value)

    @override
    def set_trial_system_attr(self, trial_id: int, key: str, value: Any) -> None:
        change = self._change(trial_id)
        if change is None:
            super().set_trial_system_attr(trial_id, key, value)
        else:
            set_system(change, key, value)

    @override
    def set_trial_state_values(
        self, trial_id: int, state: TrialState, values: Sequence[float] | None = None
    ) -> bool:
        change = self._change(trial_id)
        if change is None:
            return super().set_trial_state_values(trial_id, state, values)
        return set_state(change, state, values)

    @override
    def get_trial(self, trial_id: int) -> FrozenTrial:
        if self._overlay is None:
            return super().get_trial(trial_id)
        change = self._overlay.changes.get(trial_id)
        return change.trial if change else self._past[trial_id]

    @override
    def get_all_trials(
        self,
        study_id: int,
        deepcopy: bool = True,
        states: Container[TrialState] | None = None,
    ) -> list[FrozenTrial]:
        if self._overlay is None:
            return super().get_all_trials(study_id, deepcopy, states)
        changed = {trial_id: change.trial for trial_id, change in self._overlay.changes.items()}
        trials = {**self._past, **changed}.values()
        wanted = [trial for trial in trials if states is None or trial.state in states]
        wanted.sort(key=lambda trial: trial.number)
        return copy.deepcopy(wanted) if deepcopy else wanted

    @override
    def get_trial_id_from_study_id_trial_number(self, study_id: int, trial_number: int) -> int:
        for change in self._overlay or ():
            if change.trial.number == trial_number:
                return int(change.trial._trial_id)  # noqa: SLF001
        return super().get_trial_id_from_study_id_trial_number(study_id, trial_number)

    def _change(self, trial_id: int) -> Change | None:
        """The change to gather into; ``None`` outside a gathering."""
        if self._overlay is None:
            return None
        return self._overlay.touch(self.get_trial(trial_id))
