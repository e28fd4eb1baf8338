from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from smart_tuner.errors import EnvironmentNotFit
from smart_tuner.model.files import whole_file, write_json

if TYPE_CHECKING:
    from pathlib import Path


def test_a_file_appears_whole(tmp_path: Path) -> None:
    with whole_file(tmp_path / "a") as file:
        file.write(b"1")
        assert not (tmp_path / "a").exists()
    assert (tmp_path / "a").read_bytes() == b"1"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    with pytest.raises(TypeError), whole_file(tmp_path / "a") as file:
        file.writelines([b"half", "no bytes"])  # type: ignore[list-item]
    assert (tmp_path / "a").read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_what_a_killed_process_left_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "a.partial").write_bytes(b"left behind")
    with whole_file(tmp_path / "a") as file:
        file.write(b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_missing_folder_is_an_unfit_environment(tmp_path: Path) -> None:
    with (
        pytest.raises(EnvironmentNotFit, match="cannot be written: No such file"),
        whole_file(tmp_path / "none/a"),
    ):
        pass


def test_json_is_strict(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"\u00e9": [1, None]})
    assert json.loads((tmp_path / "a.json").read_text("ascii")) == {"\u00e9": [1, None]}
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "a.json", float("nan"))
