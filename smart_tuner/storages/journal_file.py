"""The file behind the journal: locked by the kernel, appended to in one write, never torn twice.

Optuna's own ``JournalFileBackend`` creates a lock file, which hangs every later process when its
owner is killed, and appends behind a half-written line, after which the study never opens again.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from optuna.storages.journal import BaseJournalBackend
from typing_extensions import override

from smart_tuner.errors import EnvironmentNotFit, StudyBusy
from smart_tuner.storages.torn import mend_tail

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    Record = dict[str, Any]

LOCK_SECONDS = 60.0
CREATE_TRIAL, SET_PARAM, SET_USER_ATTR, SET_SYSTEM_ATTR = 4, 5, 8, 9
"""Operation codes of the journal's format."""


class JournalFile(BaseJournalBackend):
    """A journal file; other processes may append to it between two calls.

    Args:
        path: Absolute path; the file exists.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._offset = 0
        self._pending: list[Record] | None = None
        self._seen = 0

    @override
    def read_logs(self, log_number_from: int) -> Iterator[Record]:
        """Yield what is new; Optuna reads forward only, except when it begins again at 0."""
        if log_number_from == 0:
            self._offset = 0
        if not self._pending:  # inside a batch nobody else appends
            yield from self._new_records()
        while self._pending is not None and self._seen < len(self._pending):
            self._seen += 1
            yield self._pending[self._seen - 1]

    @override
    def append_logs(self, logs: list[Record]) -> None:
        if self._pending is not None:
            self._pending.extend(logs)
            return
        with locked(self.path) as descriptor:
            self._write(descriptor, logs)

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Collect every append made inside and write them at the end, at once.

        The journal stays locked meanwhile, so that what was read inside still holds when it is
        written. A new trial and its parameters and attributes become one record. Use it from one
        thread, and read the journal first thing inside; batches do not nest.

        Raises:
            EnvironmentNotFit: The batch could not be written. This object is ahead of the file
                then: open the study again.
            StudyBusy: Another process held the journal for a minute.
        """
        with locked(self.path) as descriptor:
            self._pending, self._seen = [], 0
            try:
                yield
            finally:
                pending, self._pending = self._pending, None
                if pending:
                    self._write(descriptor, fold(pending))
                    # Optuna has applied these records already: read on behind them.
                    self._offset = os.fstat(descriptor).st_size

    def _new_records(self) -> Iterator[Record]:
        with self.path.open("rb") as file:
            file.seek(self._offset)
            for line in file:
                if not line.endswith(b"\n"):
                    return  # being written right now, or torn: the next append mends it
                self._offset += len(line)
                yield json.loads(line)

    def _write(self, descriptor: int, records: Iterable[Record]) -> None:
        lines = [json.dumps(record, separators=(",", ":")) + "\n" for record in records]
        try:
            if _is_unterminated(descriptor):
                mend_tail(self.path, descriptor)
            append_whole(descriptor, "".join(lines).encode())
        except OSError as error:
            msg = (
                f"Cannot write to {self.path}: {error.strerror}; make room or fix the folder's "
                "rights, then run the same command again: nothing finished is lost."
            )
            raise EnvironmentNotFit(msg) from error


def fold(records: list[Record]) -> list[Record]:
    """Merge a new trial's parameters and attributes into the record that creates it.

    A record with ``params`` is how the journal keeps a trial that was added whole. At 250 knobs
    it takes a third of the bytes and of the time to read.
    """
    if not records or records[0]["op_code"] != CREATE_TRIAL or "params" in records[0]:
        return records
    parameters = [record for record in records if record["op_code"] == SET_PARAM]
    if not parameters:
        return records
    trial_id = parameters[0]["trial_id"]
    mine = [record for record in records if _is_part_of_trial(record, trial_id)]
    created = dict(records[0], params={}, distributions={}, user_attrs={}, system_attrs={})
    for record in mine:
        if record["op_code"] == SET_PARAM:
            created["params"][record["param_name"]] = record["param_value_internal"]
            created["distributions"][record["param_name"]] = record["distribution"]
        created["user_attrs"].update(record.get("user_attr", {}))
        created["system_attrs"].update(record.get("system_attr", {}))
    others = (record for record in records[1:] if not _is_part_of_trial(record, trial_id))
    return [created, *others]


@contextmanager
def locked(path: Path) -> Iterator[int]:
    """Lock the journal for this process; the kernel releases it however the process ends.

    The lock is on the journal itself: there is no lock file to leave behind.

    Yields:
        A descriptor of the journal, open for reading and writing.

    Raises:
        EnvironmentNotFit: The journal cannot be opened for writing.
        StudyBusy: Another process held it for a minute.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        msg = f"Cannot write to {path}: {error.strerror}; check the study folder."
        raise EnvironmentNotFit(msg) from error
    try:
        _wait_for_lock(descriptor, path)
        yield descriptor
    finally:
        os.close(descriptor)


def append_whole(descriptor: int, content: bytes) -> None:
    """Append and sync; if that fails, leave the file as it was and raise ``OSError``."""
    start = os.fstat(descriptor).st_size
    written = 0
    try:
        while written < len(content):
            written += os.pwrite(descriptor, content[written:], start + written)
        os.fsync(descriptor)
    except OSError:
        os.ftruncate(descriptor, start)
        raise


def _wait_for_lock(descriptor: int, path: Path) -> None:
    give_up = time.monotonic() + LOCK_SECONDS
    while not _try_lock(descriptor):
        if time.monotonic() > give_up:
            msg = f"Another process has held {path} for a minute; stop it or wait for it."
            raise StudyBusy(msg)
        time.sleep(0.002)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_unterminated(descriptor: int) -> bool:
    size = os.fstat(descriptor).st_size
    return size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"


def _is_part_of_trial(record: Record, trial_id: int) -> bool:
    codes = (SET_PARAM, SET_USER_ATTR, SET_SYSTEM_ATTR)
    return record["op_code"] in codes and record["trial_id"] == trial_id
