"""Opens the Optuna study of a study folder, wherever its trials are kept."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import optuna

from smart_tuner.errors import UserInputError
from smart_tuner.storages.journal import open_study
from smart_tuner.study.files.names import STUDY_NAME

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

    from smart_tuner.study.files.folder import StudyFolder

NAME = "name"
"""What ``study.toml`` keeps of a study in a database: its name there."""


def open_kept_study(
    folder: StudyFolder,
    sampler: optuna.samplers.BaseSampler | None = None,
    *,
    create: bool = False,
    storage: str | None = None,
) -> optuna.Study:
    """Open the study of a folder.

    Args:
        folder: The study folder.
        sampler: Proposes the next routes; ``None`` for reading only.
        create: Begin the study where it is missing.
        storage: Another address of the database that the folder names, as seen from here.

    Raises:
        UserInputError: There is no such study, or it is damaged.
        EnvironmentNotFit: Journal or database cannot be opened.
    """
    document = folder.read_settings()
    url = storage or storage_of_settings(document)
    if not url:
        return open_study(folder.journal, STUDY_NAME, sampler, create=create)
    name = str(document.get(NAME, ""))
    if not name:
        msg = f"The trials of {folder.root} are kept in the folder itself: leave out --storage."
        raise UserInputError(msg)
    study = _database().open_database_study(url, name, sampler, create=create)
    assert isinstance(study, optuna.Study)  # noqa: S101, for the type checker
    return study


def kept_study(folder: StudyFolder) -> optuna.Study | None:
    """The study of a folder, for reading; ``None`` as long as nothing was tried.

    Raises:
        UserInputError: It is damaged.
        EnvironmentNotFit: Journal or database cannot be opened.
    """
    if storage_of_settings(folder.read_settings()):
        return open_kept_study(folder)
    try:
        is_empty = folder.journal.stat().st_size == 0
    except OSError:
        is_empty = True
    return None if is_empty else open_kept_study(folder)


def storage_of_settings(document: Mapping[str, Any]) -> str:
    """Address of the database that a study is kept in; empty for its folder."""
    return str(document.get("settings", {}).get("storage") or "")


def storage_errors(url: str) -> AbstractContextManager[None]:
    """Turn a database that goes away into one line; for a folder there is nothing to turn."""
    errors: AbstractContextManager[None] = _database().database_errors(url)
    return errors


def _database() -> Any:
    """What speaks to databases, which takes a while to import and few studies need."""
    return import_module("smart_tuner.storages.database")
