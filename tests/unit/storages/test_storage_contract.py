from __future__ import annotations

from typing import TYPE_CHECKING

import optuna
import pytest
from optuna.storages import InMemoryStorage, RDBStorage
from optuna.testing.pytest_storages import StorageTestCase

from smart_tuner.storages.journal import JournalStudyStorage
from smart_tuner.storages.journal_file import JournalFile
from smart_tuner.testing.storage_contract import StorageContract

if TYPE_CHECKING:
    from pathlib import Path

    from optuna.storages import BaseStorage

    from smart_tuner.testing.storage_contract import OpenStorage

optuna.logging.set_verbosity(optuna.logging.ERROR)


def journal_storage(path: Path) -> JournalStudyStorage:
    path.touch()
    return JournalStudyStorage(JournalFile(path))


class TestJournal(StorageContract):
    @pytest.fixture
    def open_storage(self, tmp_path: Path) -> OpenStorage:
        return lambda: journal_storage(tmp_path / "journal.log")


class TestInMemory(StorageContract):
    @pytest.fixture
    def open_storage(self) -> OpenStorage:
        storage = InMemoryStorage()
        return lambda: storage


class TestSqlite(StorageContract):
    @pytest.fixture
    def open_storage(self, tmp_path: Path) -> OpenStorage:
        storage = RDBStorage(f"sqlite:///{tmp_path}/study.db")
        return lambda: storage


class TestOptunaContract(StorageTestCase):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> BaseStorage:
        return journal_storage(tmp_path / "journal.log")
