"""Opens the study's journal: an Optuna journal file that survives kills and full disks."""

from __future__ import annotations

import logging
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

import optuna
import psutil
from optuna.storages import JournalStorage

from smart_tuner.errors import EnvironmentNotFit, UserInputError
from smart_tuner.storages.journal_file import JournalFile, locked
from smart_tuner.storages.torn import damaged_line, mend_tail

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

logger = logging.getLogger(__name__)

NETWORK_FILE_SYSTEMS = frozenset(
    (
        *("9p", "afs", "beegfs", "ceph", "cifs", "davfs", "fuse.glusterfs", "fuse.sshfs"),
        *("glusterfs", "gpfs", "lustre", "nfs", "nfs4", "ocfs2", "orangefs", "smb3", "smbfs"),
    )
)


class JournalStudyStorage(JournalStorage):
    """Optuna's journal storage over our file, with appends that can be gathered.

    Attributes:
        journal: The file.
    """

    def __init__(self, journal: JournalFile) -> None:
        self.journal = journal
        super().__init__(journal)

    @contextmanager
    def gathered(self) -> Iterator[None]:
        """Hold the journal alone; what is written inside becomes one append."""
        with self.journal.batch():
            self.get_all_studies()  # catches up with others, now that they are locked out
            yield


def open_study(
    journal: Path, name: str, sampler: optuna.samplers.BaseSampler | None, *, create: bool
) -> optuna.Study:
    """Open the study in a journal file, mending a torn end first.

    What :func:`prepare_journal` finds is logged as a warning; call that first to show it.

    Args:
        journal: The file; a relative path is resolved here, once.
        name: The study's name in the journal.
        sampler: Proposes the next routes; ``None`` for reading only.
        create: Create file and study where they are missing.

    Raises:
        UserInputError: There is no such study, or the journal is damaged before its end.
        EnvironmentNotFit: The file cannot be made, read or written.
        StudyBusy: Another process held the journal for a minute.
    """
    journal = journal.absolute()
    if create:
        _create_file(journal)
    for note in prepare_journal(journal):
        logger.warning(note)
    storage = _open_storage(journal)
    names = [study.study_name for study in storage.get_all_studies()]
    if name in names:
        return optuna.load_study(study_name=name, storage=storage, sampler=sampler)
    if not create:
        msg = f"No study {name!r} in {journal}; it holds: {', '.join(names) or 'none'}."
        raise UserInputError(msg)
    return optuna.create_study(
        study_name=name, storage=storage, sampler=sampler, direction="minimize"
    )


def prepare_journal(journal: Path) -> tuple[str, ...]:
    """Mend the journal's end and return what a user should hear; a sound journal gives nothing.

    A journal that cannot be written is left as it is: it can still be read.

    Raises:
        UserInputError: There is no such file, or it is not a journal.
        EnvironmentNotFit: It cannot be opened.
        StudyBusy: Another process held the journal for a minute.
    """
    if not journal.is_file():
        msg = f"No journal at {journal}; check the study folder."
        raise UserInputError(msg)
    notes = [network_note(journal, psutil.disk_partitions(all=True))]
    if os.access(journal, os.W_OK):
        with locked(journal) as descriptor:
            notes.append(mend_tail(journal, descriptor))
    return tuple(note for note in notes if note)


def network_note(path: Path, partitions: Iterable[object]) -> str:
    """Warn when a path lies on a network file system; empty if it does not.

    Args:
        path: Absolute path.
        partitions: Entries with ``mountpoint`` and ``fstype``, as psutil lists them.
    """
    best, kind = -1, ""
    for partition in partitions:
        mountpoint = str(getattr(partition, "mountpoint", ""))
        if path.is_relative_to(mountpoint or "/") and len(mountpoint) >= best:
            best, kind = len(mountpoint), str(getattr(partition, "fstype", ""))
    if kind.lower() not in NETWORK_FILE_SYSTEMS:
        return ""
    return (
        f"{path.parent} is on a network file system ({kind}): locks may not hold there. Work in "
        "it from one machine at a time, or choose a local folder."
    )


def _create_file(journal: Path) -> None:
    try:
        with journal.open("ab"):
            pass
    except OSError as error:
        msg = f"Cannot create {journal}: {error.strerror}; choose a writable study folder."
        raise EnvironmentNotFit(msg) from error


def _open_storage(journal: Path) -> JournalStudyStorage:
    try:
        return JournalStudyStorage(JournalFile(journal))
    except OSError as error:
        msg = f"Cannot read {journal}: {error.strerror}."
        raise EnvironmentNotFit(msg) from error
    except (ValueError, KeyError, AssertionError, TypeError) as error:
        line = damaged_line(journal)
        where = f"is damaged at line {line}" if line else f"cannot be replayed ({error!r})"
        remedy = f"keep a copy and cut it with `head -n {line - 1}`" if line else "restore a copy"
        msg = f"{journal} {where}, with records behind it; {remedy}, or start a new study folder."
        raise UserInputError(msg) from error
