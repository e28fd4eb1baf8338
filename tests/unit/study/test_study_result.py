import json
import math
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from smart_tuner.errors import UserInputError
from smart_tuner.study.proof.gain import Gain
from smart_tuner.study.proof.result import TuneResult, Verdict, read_result, write_result
from smart_tuner.validate.pairs import LossOverPairs

FINITE = st.floats(0.001, 1000)
GAINS = st.builds(Gain, FINITE, FINITE, st.one_of(FINITE, st.just(math.inf)), st.integers(1, 100))
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)

LOSS = st.one_of(st.floats(0, 1000), st.just(math.inf))
LOSSES = st.builds(
    LossOverPairs,
    *(TEXT, TEXT, TEXT, LOSS, TEXT, LOSS, st.integers(1, 99), LOSS),
    st.sampled_from(["worst", "mean"]),
)


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_what_is_written_is_read_back(data: st.DataObject, tmp_path: Path) -> None:
    result = data.draw(
        st.builds(
            TuneResult,
            verdict=st.sampled_from(Verdict),
            sentence=TEXT,
            route=TEXT,
            study=st.just(tmp_path),
            min_gain=st.floats(1, 2),
            max_regression=st.one_of(st.floats(0, 1), st.just(math.inf)),
            route_gain=st.none() | GAINS,
            engine_gain=st.none() | GAINS,
            sustained_gain=st.none() | GAINS,
            bare_gain=st.none() | GAINS,
            indicative=st.booleans(),
            provisional=st.booleans(),
            trials=st.dictionaries(TEXT, st.integers(0, 1000), max_size=3),
            spent_seconds=FINITE,
            notes=st.lists(TEXT, max_size=3).map(tuple),
            accuracy=st.lists(LOSSES, max_size=2).map(tuple),
        )
    )
    path = tmp_path / "result.json"
    write_result(path, result)
    assert read_result(path) == result
    json.loads(path.read_text(encoding="utf-8"), parse_constant=pytest.fail)


def result(**changes: object) -> TuneResult:
    values = {
        "verdict": Verdict.WINNER,
        "sentence": "",
        "route": "-a=1",
        "study": Path("/s"),
        "min_gain": 1.01,
        "max_regression": 0.05,
        "route_gain": Gain(1.2, 1.1, 1.3, 5),
    }
    return TuneResult(**(values | changes))  # type: ignore[arg-type]


def test_the_gain_is_that_of_what_ships() -> None:
    assert result().gain == 1.2
    assert result(verdict=Verdict.DEFAULT_IS_BEST).gain == 1.0
    assert result(route_gain=None).gain == 1.0


def test_a_missing_verdict_says_where_to_look(tmp_path: Path) -> None:
    with pytest.raises(UserInputError, match=r"No verdict in .* yet: `smart-tuner status`"):
        read_result(tmp_path / "result.json")


def test_a_verdict_of_an_older_version_has_no_accuracy(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text(without("accuracy"))
    assert read_result(path).accuracy == ()


def without(key: str) -> str:
    data = result().to_json()
    del data[key]
    return json.dumps(data)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        without("route_gain"),
        without("min_gain"),
        json.dumps(result().to_json() | {"verdict": "maybe"}),
        json.dumps(result().to_json() | {"surprise": 1}),
        json.dumps(result().to_json() | {"route_gain": {"value": 1}}),
        "\udcff",
    ],
)
def test_a_damaged_verdict_is_one_line_with_the_remedy(tmp_path: Path, text: str) -> None:
    path = tmp_path / "result.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(UserInputError, match=r"is damaged .*run the same `tune` command again"):
        read_result(path)
