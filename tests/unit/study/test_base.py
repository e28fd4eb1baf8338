from pathlib import Path

import pytest

from smart_tuner.errors import UserInputError
from smart_tuner.knobs.database import KnobDatabase
from smart_tuner.knobs.knob import Knob
from smart_tuner.study.setup.base import read_base, rebase

DATABASE = KnobDatabase(
    (
        Knob("mode", ("off", "on", "auto"), "off"),
        Knob("threads:intra", ("auto", "1", "2"), "auto"),
        Knob("free", (), "0", is_open=True),
    ),
    "1",
)


def write(folder: Path, text: str) -> Path:
    path = folder / "base.toml"
    path.write_text(text)
    return path


def test_no_file_is_an_empty_base() -> None:
    assert read_base(None) == {}


def test_values_become_text_and_switches_on_and_off(tmp_path: Path) -> None:
    path = write(tmp_path, '"threads:intra" = 2\nmode = true\nother = "x y"\nscale = 0.5\n')
    assert read_base(path) == {
        "threads:intra": "2",
        "mode": "on",
        "other": "x y",
        "scale": "0.5",
    }


@pytest.mark.parametrize("text", ["a = [1]", "[a]\nb = 1", "a = 2024-01-01"])
def test_anything_else_is_refused_by_name(tmp_path: Path, text: str) -> None:
    with pytest.raises(UserInputError, match="a must be text, a number or true/false"):
        read_base(write(tmp_path, text))


def test_a_missing_file_and_one_that_is_no_toml_are_named(tmp_path: Path) -> None:
    with pytest.raises(UserInputError, match=r"Cannot read the base .*nothing.toml"):
        read_base(tmp_path / "nothing.toml")
    with pytest.raises(UserInputError, match="is not valid TOML"):
        read_base(write(tmp_path, "a = "))


def test_the_base_s_values_become_the_defaults() -> None:
    knobs = rebase(DATABASE, {"mode": "auto", "free": "17", "elsewhere": "1"})
    assert knobs["mode"].default == "auto"
    assert set(knobs["mode"].choices) == {"off", "on", "auto"}
    assert knobs["free"].default == "17"
    assert knobs["threads:intra"] == DATABASE["threads:intra"]
    assert [knob.name for knob in knobs] == [knob.name for knob in DATABASE]


def test_a_base_that_says_nothing_new_changes_nothing() -> None:
    assert rebase(DATABASE, {"mode": "off"}) == DATABASE


def test_a_value_that_no_knob_takes_is_refused_with_those_that_it_takes() -> None:
    with pytest.raises(UserInputError, match="sets mode to 'fast'; it takes off, on, auto"):
        rebase(DATABASE, {"mode": "fast"})
