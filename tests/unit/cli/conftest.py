from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.cli.calling import REPLAY, call, write_model

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import MakeOnce


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a model in it."""
    monkeypatch.chdir(tmp_path)
    write_model(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def finished(make_once: MakeOnce) -> Path:
    """A study that found a winner; nothing in it may be changed."""
    return make_once("finished", finish) / "a study"


def finish(folder: Path) -> None:
    limits = ("--trials", 4, "--budget", "50s", "--seed", 3)
    study = folder / "a study"
    ended = call("tune", write_model(folder), *REPLAY, "--study", study, *limits, "--json")
    assert ended.code == 0, ended
    (folder / "tune.json").write_text(ended.out, encoding="utf-8")
