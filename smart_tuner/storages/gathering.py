"""Writes that belong together, written together, whatever the storage behind a study."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    import optuna


@runtime_checkable
class Gathers(Protocol):
    """A storage that can write much at once."""

    def gathered(self) -> AbstractContextManager[None]:
        """Hold the study alone, and write what is set inside in one go at the end."""
        ...


def one_append(study: optuna.Study) -> AbstractContextManager[None]:
    """Gather everything that is written to trials of the study inside into one append.

    Other workers wait meanwhile. On a storage that is not ours nothing is gathered.

    Raises:
        EnvironmentNotFit: It could not be written, e.g. because the disk is full.
        StudyBusy: Another process held the study for a minute.
    """
    storage = storage_of(study)
    return storage.gathered() if isinstance(storage, Gathers) else nullcontext()


def storage_of(study: optuna.Study) -> optuna.storages.BaseStorage:
    """The storage behind a study, which Optuna has no public name for."""
    return study._storage  # noqa: SLF001
