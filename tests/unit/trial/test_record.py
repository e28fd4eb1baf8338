import json
import math
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_tuner.engine.build import BuildRequest, Engine
from smart_tuner.errors import EnvironmentNotFit, UserInputError
from smart_tuner.measure.latency import Comparison, LatencySummary
from smart_tuner.model.files import write_json
from smart_tuner.model.spec import ModelSpec, TensorSpec
from smart_tuner.route.build_route import BuildRoute
from smart_tuner.trial.fields import to_json
from smart_tuner.trial.read import read_model, read_platform
from smart_tuner.trial.record import (
    remove_leftovers,
    trial_from_json,
    trial_to_json,
)
from smart_tuner.trial.trial import Trial, TrialOutcome
from smart_tuner.validate.losses import OutputLoss

TEXT = st.text(max_size=8)
NUMBER = st.floats(allow_nan=False)
POSIX = st.text("abc/ .-é日", min_size=1, max_size=8).map(lambda text: Path("/") / text.strip("/"))
ROUTES = st.lists(st.tuples(TEXT, TEXT), max_size=3).map(lambda pairs: BuildRoute(tuple(pairs)))
SHAPES = st.dictionaries(
    TEXT, st.lists(st.integers(0, 1 << 40), max_size=3).map(tuple), max_size=2
)
REQUESTS = st.builds(
    BuildRequest,
    model=POSIX,
    route=ROUTES,
    base=st.dictionaries(TEXT, TEXT, max_size=2),
    shapes=st.lists(SHAPES, max_size=2).map(tuple),
    reference=st.booleans(),
)
TEXTS = st.lists(TEXT, max_size=2).map(tuple)
ENGINES = st.builds(
    Engine,
    POSIX,
    TEXT,
    TEXT,
    REQUESTS,
    NUMBER,
    TEXTS,
    TEXT,
    structure=TEXT,
    timing_cache=st.none() | POSIX,
)
LOSSES = st.builds(OutputLoss, TEXT, TEXT, TEXT, TEXT, NUMBER, NUMBER, TEXT)
SUMMARIES = st.builds(LatencySummary, st.integers(0, 100), *[NUMBER] * 8)
COMPARISONS = st.builds(
    Comparison,
    TEXT,
    st.lists(NUMBER, max_size=3).map(tuple),
    NUMBER,
    NUMBER,
    SUMMARIES,
    SUMMARIES,
    NUMBER,
    TEXTS,
)
TRIALS = st.builds(
    Trial,
    ROUTES,
    st.sampled_from(TrialOutcome),
    st.none() | ENGINES,
    st.lists(LOSSES, max_size=2).map(tuple),
    st.lists(COMPARISONS, max_size=2).map(tuple),
    st.booleans(),
    TEXT,
    st.dictionaries(TEXT, NUMBER, max_size=2),
    is_alike=st.booleans(),
    starts=st.just({"build": 1.5}),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


@given(TRIALS)
def test_a_trial_survives_strict_json(trial: Trial) -> None:
    text = json.dumps(trial_to_json(trial), allow_nan=False)
    assert trial_from_json(json.loads(text)) == trial


@given(TRIALS, st.data())
def test_a_damaged_record_is_a_user_error_or_still_a_trial(trial: Trial, data: Any) -> None:
    record = trial_to_json(trial)
    field = data.draw(st.sampled_from(sorted(record)))
    if data.draw(st.booleans()):
        del record[field]
    else:
        record[field] = data.draw(JSON)
    with suppress(UserInputError):
        assert isinstance(trial_from_json(record), Trial)


@given(JSON)
def test_no_json_at_all_breaks_a_reader(data: object) -> None:
    for read in (trial_from_json, read_model, read_platform):
        with pytest.raises(UserInputError):
            read(data)


def test_nan_and_infinities_are_text() -> None:
    loss = OutputLoss("p", "a", "y", "l0", math.inf, math.nan)
    record = trial_to_json(Trial(BuildRoute(), TrialOutcome.INFEASIBLE, losses=(loss,)))
    assert record["losses"][0]["loss"] == "inf"
    assert record["losses"][0]["epsilon"] == "nan"
    back = trial_from_json(json.loads(json.dumps(record, allow_nan=False)))
    assert math.isnan(back.losses[0].epsilon)


def test_numpy_numbers_become_plain_ones() -> None:
    values = [np.float32(0.5), np.int64(3), np.bool_(True), np.float64(1.5), np.float32("inf")]
    assert to_json(values) == [0.5, 3, True, 1.5, "inf"]
    assert [type(value) for value in to_json(values)] == [float, int, bool, float, str]
    with pytest.raises(TypeError, match="bytes has no JSON form"):
        to_json({"value": b"x"})


def test_records_from_before_starts_were_kept_are_still_read() -> None:
    record = trial_to_json(Trial(BuildRoute(), TrialOutcome.FEASIBLE, starts={"build": 1.5}))
    assert trial_from_json(record).starts == {"build": 1.5}
    del record["starts"]
    assert trial_from_json(record).starts == {}


def test_a_newer_record_is_refused_and_says_why() -> None:
    record = {**trial_to_json(Trial(BuildRoute(), TrialOutcome.FEASIBLE)), "schema_version": 99}
    with pytest.raises(UserInputError, match="version 99 is newer"):
        trial_from_json(record)


def test_a_model_is_read_back_equal() -> None:
    tensor = TensorSpec("x", "float32", ("batch", 3, None))
    model = ModelSpec(Path("/m"), "0", 5, (tensor,), (TensorSpec("y", "", None),), 8, {"": 17}, {})
    assert read_model(json.loads(json.dumps(to_json(model)))) == model


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    write_json(path, {"old": True})
    with pytest.raises(ValueError, match="JSON"):
        write_json(path, {"number": math.nan})
    assert json.loads(path.read_text()) == {"old": True}
    write_json(path, {"lone surrogate": "\ud800"})
    assert json.loads(path.read_text()) == {"lone surrogate": "\ud800"}
    assert [item.name for item in tmp_path.iterdir()] == ["result.json"]
    with pytest.raises(EnvironmentNotFit):
        write_json(tmp_path / "none" / "result.json", {})


def test_what_a_killed_writer_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / "trials").mkdir()
    for name in ("result.json.partial", "result.json"):
        (tmp_path / "trials" / name).write_text("{}")
    remove_leftovers(tmp_path)
    assert [item.name for item in (tmp_path / "trials").iterdir()] == ["result.json"]
