import json
import math
import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smart_tuner.errors import UserInputError
from smart_tuner.study.setup.settings import (
    StudySettings,
    command_line,
    make_settings,
)
from smart_tuner.study.setup.units import format_duration, parse_duration, parse_size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("90s", 90),
        ("1.5m", 90),
        ("10m", 600),
        ("2h", 7200),
        ("1h30m", 5400),
        ("1h5s", 3605),
        (" 1H30M15S ", 5415),
        ("0", 0),
        ("inf", math.inf),
    ],
)
def test_durations_are_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "m", "10 m", "1h30", "30m1h", "-5", "1e3", "ten", "5min"])
def test_what_is_no_duration_is_refused_with_examples(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration; write 90s, 10m, 2h or 1h30m"):
        parse_duration(text)


@given(st.floats(min_value=0, max_value=1e9, allow_nan=False))
def test_a_duration_that_is_written_is_read_back(seconds: float) -> None:
    assert parse_duration(format_duration(seconds)) == pytest.approx(seconds, abs=1e-12)


@given(st.integers(0, 10**15))
def test_whole_seconds_are_kept_exactly(seconds: int) -> None:
    assert parse_duration(format_duration(float(seconds))) == seconds


@pytest.mark.parametrize(
    ("text", "size"),
    [("1000", 1000), ("1000B", 1000), ("512M", 512 << 20), ("4G", 4 << 30), ("1.5 KiB", 1536)],
)
def test_sizes_are_read(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "G", "5iB", "4X", "-1", "1e3", "9" * 400 + "G"])
def test_what_is_no_size_is_refused_with_examples(text: str) -> None:
    with pytest.raises(ValueError, match="is not a size; write 512M or 4G"):
        parse_size(text)


@given(st.text(max_size=20))
def test_no_text_makes_the_parsers_fail_in_another_way(text: str) -> None:
    for parse in (parse_duration, parse_size):
        try:
            value = parse(text)
        except ValueError:
            continue
        assert isinstance(value, float | int)
        assert value >= 0


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"budget": "soon"}, "budget: 'soon' is not a duration"),
    ({"budget": -1}, "budget"),
    ({"budget": True}, "budget"),
    ({"budget": math.nan}, "budget"),
    ({"budget": "0"}, "the budget is zero"),
    ({"trials": 0}, "trials"),
    ({"trials": 1.5}, "trials"),
    ({"trials": "many"}, "trials"),
    ({"seed": -1}, "seed"),
    ({"seed": 1 << 63}, "seed"),
    ({"rtol": -1}, "rtol"),
    ({"atol": math.nan}, "atol"),
    ({"reference": "truth"}, "reference"),
    ({"min_gain": 0.9}, "min_gain"),
    ({"max_regression": -0.1}, "max_regression"),
    ({"trial_timeout": 0}, "trial_timeout"),
    ({"memory_limit": "0"}, "memory_limit"),
    ({"memory_limit": "lots"}, "memory_limit: 'lots' is not a size"),
    ({"epsilon": ["0.1"]}, "add --metric"),
    ({"outputs": ["y.npz"]}, "--outputs needs the --inputs"),
    ({"workload": "w.toml", "shapes": ["x:1"]}, "--workload says all about inputs"),
    ({"workload": "w.toml", "held_out": ["x.npz"]}, "--workload says all about inputs"),
    ({"inputs": {"a": 1}}, "inputs"),
    ({"sampler": 3}, "sampler"),
    ({"bugdet": "10m"}, "bugdet: no such setting; known are all_knobs, ask"),
]


@pytest.mark.parametrize(("values", "words"), WRONG, ids=lambda item: str(item)[:40])
def test_a_wrong_value_gives_one_line_that_names_it(values: dict[str, Any], words: str) -> None:
    with pytest.raises(UserInputError) as caught:
        make_settings({"model": "m.onnx", **values})
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_several_wrong_values_are_all_named_on_one_line() -> None:
    with pytest.raises(UserInputError) as caught:
        make_settings({"model": "m.onnx", "trials": 0, "rtol": -1})
    assert "trials: " in str(caught.value)
    assert "rtol: " in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_model_cannot_be_left_out() -> None:
    with pytest.raises(UserInputError, match="model"):
        make_settings({})


def test_one_value_stands_for_a_list_of_one_and_a_number_for_its_text() -> None:
    settings = make_settings({"model": "m.onnx", "metric": "l1", "epsilon": 0.01, "only": "a*"})
    assert settings.epsilon == ("0.01",)
    assert settings.only == ("a*",)
    mixed = make_settings({"model": "m.onnx", "metric": "l1", "epsilon": [0.5, "y:1"]})
    assert mixed.epsilon == ("0.5", "y:1")


def test_the_folder_is_named_after_the_model_unless_it_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert make_settings({"model": "/models/net.onnx"}).folder == tmp_path / "net.study"
    assert make_settings({"model": "m.onnx", "study": "here"}).folder == tmp_path / "here"
    assert make_settings({"model": "m.onnx", "study": "~/x"}).folder == Path.home() / "x"


def kept(settings: StudySettings) -> dict[str, Any]:
    """Settings after a way through ``study.toml``, which has no null."""
    plain = settings.model_dump(mode="json", exclude={"study", "seed"})
    assert json.dumps(plain)
    return {name: value for name, value in plain.items() if value is not None}


def test_defaults_leave_nothing_to_say() -> None:
    settings = make_settings({"model": "m.onnx"})
    words = command_line(kept(settings), Path("/s"))
    assert words == ["smart-tuner", "tune", "m.onnx", "--study", "/s"]


TEXT = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=12)
LISTS = st.lists(TEXT, max_size=3)


@settings(deadline=None)
@given(
    model=TEXT.filter(lambda text: not text.startswith("-")),
    lists=st.fixed_dictionaries(dict.fromkeys(("shapes", "only", "values", "freeze"), LISTS)),
    numbers=st.fixed_dictionaries(
        {
            "budget": st.one_of(st.just(math.inf), st.floats(0.001, 1e8)),
            "trials": st.one_of(st.none(), st.integers(1, 10**6)),
            "rtol": st.floats(0, 1),
            "min_gain": st.floats(1, 3),
            "all_knobs": st.booleans(),
            "memory_limit": st.one_of(st.none(), st.integers(1, 1 << 50)),
            "metric": st.sampled_from([None, "linf", "l0"]),
        }
    ),
)
def test_the_printed_command_means_the_same_settings(
    model: str, lists: dict[str, list[str]], numbers: dict[str, Any]
) -> None:
    settings = make_settings({"model": model, **lists, **numbers})
    folder = Path("/a folder/with 'quotes' [x]; $y")
    words = command_line(kept(settings), folder)
    assert shlex.split(shlex.join(words)) == words
    again = make_settings(parse(words))
    assert again.folder == folder
    assert again.model_copy(update={"study": None, "budget": 1.0}) == settings.model_copy(
        update={"budget": 1.0}
    )
    assert again.budget == pytest.approx(settings.budget, abs=1e-12)


def parse(words: list[str]) -> dict[str, Any]:
    """What a command line holds, read the plain way."""
    assert words[:2] == ["smart-tuner", "tune"]
    assert words[3] == "--study"
    found: dict[str, Any] = {"model": words[2], "study": words[4]}
    for word in words[5:]:
        flag, _, value = word.partition("=")
        name = flag.removeprefix("--").replace("-", "_")
        if word == flag:
            found[name] = True
        elif StudySettings.model_fields[name].default == ():
            found.setdefault(name, []).append(value)
        else:
            found[name] = value
    return found


def test_every_setting_has_a_help_line_that_fits_a_flag() -> None:
    for name, field in StudySettings.model_fields.items():
        assert field.description, name
        assert field.description.endswith((".", "]")), name
