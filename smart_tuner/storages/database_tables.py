"""Optuna's tables in PostgreSQL, made by one process at a time and read many rows at a time."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from optuna.storages import RDBStorage
from optuna.storages._rdb.models import BaseModel
from sqlalchemy import create_engine, or_, text
from sqlalchemy.pool import NullPool
from typing_extensions import override

from smart_tuner.storages.database_rows import TRIALS, read_trials

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from optuna.trial import FrozenTrial, TrialState
    from sqlalchemy import Connection

LOCK_SPACE = 0x736D7274
"""First of the two numbers of our advisory locks; the second is the study's id, or 0."""

CONNECT_SECONDS = 10


class Tables(RDBStorage):
    """Optuna's storage, reading many rows at a time.

    Attributes:
        connection: That of the transaction under way, which reads as well.
    """

    def __init__(self, address: str, *, create: bool) -> None:
        self.connection: Connection | None = None
        arguments = {"connect_timeout": CONNECT_SECONDS}
        # Between two trials a worker holds no connection: servers take a hundred or so.
        options = {"poolclass": NullPool, "connect_args": arguments}
        with _tables_made(address, arguments) if create else nullcontext():
            super().__init__(address, engine_kwargs=options, skip_table_creation=True)

    @override
    def _get_trials(
        self,
        study_id: int,
        states: Container[TrialState] | None,
        included_trial_ids: set[int],
        trial_id_greater_than: int,
    ) -> list[FrozenTrial]:
        is_wanted = or_(
            TRIALS.c.trial_id > trial_id_greater_than, TRIALS.c.trial_id.in_(included_trial_ids)
        )
        mine = TRIALS.c.study_id == study_id
        if self.connection is not None:
            trials = read_trials(self.connection, mine, is_wanted)
        else:
            with self.engine.connect() as connection:
                trials = read_trials(connection, mine, is_wanted)
        if not trials and trial_id_greater_than < 0:
            self.get_study_name_from_id(study_id)  # raises KeyError if there is no such study
        return [trial for trial in trials if states is None or trial.state in states]

    @override
    def get_trial(self, trial_id: int) -> FrozenTrial:
        with self.engine.connect() as connection:
            trials = read_trials(connection, TRIALS.c.trial_id == trial_id)
        if not trials:
            msg = f"No trial with id {trial_id}."
            raise KeyError(msg)
        return trials[0]


@contextmanager
def _tables_made(address: str, arguments: dict[str, int]) -> Iterator[None]:
    """Make Optuna's tables where they are missing; who comes at the same time waits."""
    engine = create_engine(address, poolclass=NullPool, connect_args=arguments)
    with engine.begin() as connection:
        connection.execute(text(f"SELECT pg_advisory_xact_lock({LOCK_SPACE}, 0)"))
        BaseModel.metadata.create_all(connection)
    with engine.begin() as connection:
        connection.execute(text(f"SELECT pg_advisory_xact_lock({LOCK_SPACE}, 0)"))
        yield
