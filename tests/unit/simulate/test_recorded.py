from __future__ import annotations

import math

import numpy as np
import pytest

from smart_tuner.errors import BuildError, UserInputError
from smart_tuner.knobs.knob import Knob
from smart_tuner.simulate.effects import Failure, Noise
from smart_tuner.simulate.recorded import RecordedCompiler, RecordedTrial

KNOBS = (Knob("a", ("on", "off"), "on"), Knob("b", ("0", "1", "2"), "0"))
DEFAULT = RecordedTrial({}, "feasible", 2.0, 0.0, 5.0)
COMPILER = RecordedCompiler(
    KNOBS,
    (
        DEFAULT,
        RecordedTrial({"a": "off", "b": "0"}, "feasible", 1.5, 1e-4, 6.0),
        RecordedTrial({"b": "1"}, "timed_out", build_seconds=60.0),
        RecordedTrial({"b": "2"}, "infeasible"),
        RecordedTrial({"a": "off", "b": "2"}, "infeasible", 1.0, 0.5),
    ),
    noise=Noise(build=0, measurement=0.001, spike_rate=0),
)


def test_records_answer() -> None:
    assert COMPILER.latency_ms({"a": "off"}) == 1.5
    assert COMPILER.loss({"a": "off"}) == 1e-4
    assert COMPILER.failure({"a": "off", "b": "0"}) is None
    assert COMPILER.failure({"b": "1"}) is Failure.HANG
    assert COMPILER.failure({"b": "2"}) is Failure.NAN
    assert COMPILER.loss({"b": "2"}) == math.inf
    assert COMPILER.failure({"a": "off", "b": "2"}) is None


def test_a_route_without_a_record_is_named() -> None:
    with pytest.raises(BuildError, match="-a=off -b=1"):
        COMPILER.failure({"b": "1", "a": "off"})
    with pytest.raises(UserInputError, match="nope"):
        COMPILER.failure({"nope": "1"})


def test_observations_repeat_the_record() -> None:
    seen = COMPILER.observe({"a": "off"}, np.random.default_rng(0))
    assert (seen.outcome, seen.loss, seen.build_seconds) == ("feasible", 1e-4, 6.0)
    assert seen.latency_ms == pytest.approx(1.5, rel=0.01)
    seen = COMPILER.observe({"b": "1"}, np.random.default_rng(0))
    assert (seen.outcome, seen.latency_ms, seen.loss) == ("timed_out", None, None)
    seen = COMPILER.observe({"b": "2"}, np.random.default_rng(0))
    assert (seen.outcome, seen.latency_ms, seen.loss) == ("infeasible", None, math.inf)


@pytest.mark.parametrize(
    "trials",
    [
        (),
        (RecordedTrial({"b": "1"}, "feasible", 1.0),),
        (DEFAULT, RecordedTrial({"b": "0"}, "feasible", 1.0)),
        (DEFAULT, RecordedTrial({"b": "1"}, "great", 1.0)),
        (DEFAULT, RecordedTrial({"b": "1"}, "feasible")),
        (DEFAULT, RecordedTrial({"b": "1"}, "infeasible", loss=0.5)),
        (DEFAULT, RecordedTrial({"b": "9"}, "feasible", 1.0)),
    ],
)
def test_records_that_make_no_sense_are_refused(trials: tuple[RecordedTrial, ...]) -> None:
    with pytest.raises(UserInputError):
        RecordedCompiler(KNOBS, trials)
