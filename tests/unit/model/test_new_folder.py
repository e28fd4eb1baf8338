from pathlib import Path

import pytest

from smart_tuner.errors import EnvironmentNotFit, UserInputError
from smart_tuner.model.new_folder import new_folder


def fill(place: Path, text: str = "new", *, replace: bool = False) -> None:
    with new_folder(place, "--out", replace=replace) as making:
        (making / "deep").mkdir()
        (making / "deep" / "file").write_text(text)
        (making / "top").write_text(text)
        assert not place.exists() or replace


def test_a_folder_appears_whole_with_its_parents(tmp_path: Path) -> None:
    fill(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b" / "deep" / "file").read_text() == "new"
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b"]


def fail(place: Path, error: Exception) -> None:
    with new_folder(place, "--out") as making:
        (making / "file").write_text("half")
        raise error


def test_what_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="broken"):
        fail(tmp_path / "a" / "b", ValueError("broken"))
    assert list(tmp_path.iterdir()) == []


def test_what_the_system_refuses_is_the_environments_fault(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentNotFit, match=r"No space left.*--out"):
        fail(tmp_path / "a", OSError(28, "No space left on device"))
    assert list(tmp_path.iterdir()) == []


def test_an_empty_folder_is_free(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with new_folder(tmp_path / "a", "--out") as making:
        (making / "file").write_text("new")
    assert (tmp_path / "a" / "file").exists()


def test_another_folder_is_kept_unless_it_may_be_replaced(tmp_path: Path) -> None:
    place = tmp_path / "a"
    fill(place, "old")
    (place / "mine").write_text("mine")
    with pytest.raises(UserInputError, match=r"there already.*--force"):
        fill(place)
    fill(place, replace=True)
    assert (place / "deep" / "file").read_text() == "new"
    assert (place / "mine").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("mine")
    with pytest.raises(UserInputError, match="is a file"):
        fill(tmp_path / "a", replace=True)
    with pytest.raises(EnvironmentNotFit, match="allows no folder"):
        fill(tmp_path / "a" / "b")
