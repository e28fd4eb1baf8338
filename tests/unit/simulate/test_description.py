from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_tuner.errors import UserInputError
from smart_tuner.knobs.knob import Knob
from smart_tuner.simulate.compiler import SimulatedCompiler
from smart_tuner.simulate.description import Description, read_description, write_description
from smart_tuner.simulate.generators import generator_names, make_compiler
from smart_tuner.simulate.model_file import (
    description_path,
    load_description,
    write_simulated_model,
)
from smart_tuner.simulate.recorded import RecordedCompiler, RecordedTrial

if TYPE_CHECKING:
    from pathlib import Path

KNOB = Knob("a", ("on", "off"), "on", source="simulated")
RECORDED = RecordedCompiler((KNOB,), (RecordedTrial({}, "feasible", 1.0, 0.0, 3.0),))
MINIMAL: dict[str, Any] = {
    "schema_version": 1,
    "simulated": {
        "knobs": [{"name": "a", "values": ["on", "off"], "default": "on"}],
        "base_latency_ms": 1.5,
        "effects": [{"knob": "a", "value": "off", "log_latency": -0.1, "failure": "hang"}],
        "noise": {"build": 0},
    },
}


@pytest.mark.parametrize("name", generator_names())
def test_generated_compilers_come_back_equal(name: str) -> None:
    description = Description(make_compiler(name, seed=1), real_seconds=0.5, seed=7)
    read = read_description(write_description(description))
    assert read == description
    values = {knob.name: knob.choices[-1] for knob in read.compiler.knobs[::20]}
    seen = [
        part.compiler.observe(values, np.random.default_rng(3)) for part in (read, description)
    ]
    assert seen[0] == seen[1]
    assert read.compiler.digest() == description.compiler.digest()


def test_recorded_trials_come_back_equal() -> None:
    assert read_description(write_description(Description(RECORDED))) == Description(RECORDED)


def test_a_short_description_is_enough() -> None:
    compiler = read_description(json.dumps(MINIMAL)).compiler
    assert isinstance(compiler, SimulatedCompiler)
    assert compiler.base_latency_ms == 1.5
    assert compiler.noise.build == 0
    assert compiler.effects[0].failure == "hang"


def test_what_json_cannot_hold_is_refused_when_written() -> None:
    endless = SimulatedCompiler((KNOB,), base_latency_ms=float("inf"))
    with pytest.raises(UserInputError):
        write_description(Description(endless))


def changed(path: str, value: object) -> str:
    data = json.loads(json.dumps(MINIMAL))
    *parents, last = path.split(".")
    place = data
    for part in parents:
        place = place[int(part) if part.isdigit() else part]
    place[last] = value
    return json.dumps(data)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("schema_version", 2),
        ("schema_version", "1"),
        ("surprise", 1),
        ("seed", -1),
        ("real_seconds", float("nan")),
        (
            "recorded",
            {
                "knobs": MINIMAL["simulated"]["knobs"],
                "trials": [{"values": {}, "outcome": "feasible", "latency_ms": 1}],
            },
        ),
        ("simulated", None),
        ("simulated.base_latency_ms", "1.5"),
        ("simulated.base_latency_ms", True),
        ("simulated.base_latency_ms", float("inf")),
        ("simulated.base_latency_ms", -1),
        ("simulated.base_latency_ms", 10**400),
        ("simulated.knobs", []),
        ("simulated.knobs.0.values", ["on", 1]),
        ("simulated.knobs.0.name", "x" * 5000),
        ("simulated.effects.0.failure", "explodes"),
        ("simulated.effects.0.value", "maybe"),
        ("simulated.effects.0.log_latency", 1e9),
        ("simulated.effects.0.typo", 1),
        ("simulated.noise.spike_rate", 1.5),
    ],
)
def test_faults_are_named_in_one_line(path: str, value: object) -> None:
    with pytest.raises(UserInputError) as caught:
        read_description(changed(path, value))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    "text",
    ["", "[]", "null", "{", "\ud800", "\x00", "[" * 100_000, '{"schema_version": 1}', "9" * 9999],
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(UserInputError):
        read_description(text)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    with pytest.raises(UserInputError):
        read_description(text)


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
anything = st.recursive(
    scalars,
    lambda part: (
        st.lists(part, max_size=3) | st.dictionaries(st.text(max_size=8), part, max_size=3)
    ),
    max_leaves=8,
)


@given(
    st.sampled_from(
        [
            "simulated.knobs",
            "simulated.knobs.0.values",
            "simulated.knobs.0.default",
            "simulated.effects",
            "simulated.effects.0.knob",
            "simulated.pairs",
            "simulated.gates",
            "simulated.noise",
            "simulated.origin",
            "recorded",
        ]
    ),
    anything,
)
def test_any_part_is_read_or_refused(path: str, value: object) -> None:
    try:
        read = read_description(changed(path, value))
    except UserInputError:
        return
    assert read_description(write_description(read)) == read


def test_the_model_and_its_description_lie_side_by_side(tmp_path: Path) -> None:
    compiler = make_compiler("sparse", seed=0, knob_count=10)
    path = write_simulated_model(tmp_path, compiler, name="odd name", seed=3)
    assert sorted(tmp_path.iterdir()) == [path, description_path(path)]
    assert load_description(path) == Description(compiler, seed=3)


@pytest.mark.parametrize("content", [None, b"\xff\xfe", b"{}"])
def test_a_missing_or_broken_description_is_named(tmp_path: Path, content: bytes | None) -> None:
    path = write_simulated_model(tmp_path, RECORDED)
    if content is None:
        description_path(path).unlink()
    else:
        description_path(path).write_bytes(content)
    with pytest.raises(UserInputError, match=r"model\.onnx\.replay\.json"):
        load_description(path)
