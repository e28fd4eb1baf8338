from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from filelock import FileLock

from tests.unit.cli.calling import REPLAY, call, write_model

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a model in it."""
    monkeypatch.chdir(tmp_path)
    write_model(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """A study that found a winner, made once for all workers; nothing in it may be changed."""
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "finished"
    study = folder / "a study"
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            folder.mkdir()
            limits = ("--trials", 4, "--budget", "50s", "--seed", 3)
            ended = call("tune", write_model(folder), *REPLAY, "--study", study, *limits, "--json")
            assert ended.code == 0, ended
            (folder / "tune.json").write_text(ended.out, encoding="utf-8")
    return study
