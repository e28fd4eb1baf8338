from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from smart_tuner.errors import BuildError, UserInputError
from smart_tuner.simulate.t4 import read_t4


def result(x: int, y: str, run_ms: float | None, invalidity: str = "correct") -> dict[str, Any]:
    times: dict[str, Any] = {"compilation": 1500.0, "framework": 0, "search_algorithm": 0}
    if run_ms is not None:
        times["runtimes"] = [run_ms, run_ms * 1.02, run_ms * 0.98, run_ms]
    return {"configuration": {"x": x, "y": y}, "times": times, "invalidity": invalidity}


RESULTS = [
    result(2, "a", 3.0),
    result(10, "a", 1.0),
    result(2, "b", 2.0),
    result(10, "b", None, "runtime"),
    result(4, "a", None, "compile"),
    result(4, "b", None, "timeout"),
    result(100, "a", None, "correctness"),
    result(100, "b", None),  # said to be correct, and yet without a figure
]


def text(results: list[dict[str, Any]]) -> str:
    return json.dumps({"schema_version": "1.0.0", "results": results})


def test_every_kind_of_result_is_kept() -> None:
    compiler = read_t4(text(RESULTS), "kernel")
    outcomes = {tuple(trial.values.values()): trial.outcome for trial in compiler.trials}
    assert outcomes == {
        ("2", "a"): "feasible",
        ("10", "a"): "feasible",
        ("2", "b"): "feasible",
        ("10", "b"): "run_failed",
        ("4", "a"): "build_failed",
        ("4", "b"): "timed_out",
        ("100", "a"): "infeasible",
        ("100", "b"): "run_failed",
    }


def test_the_median_configuration_is_the_default() -> None:
    compiler = read_t4(text(RESULTS), "kernel")
    assert {knob.name: knob.default for knob in compiler.knobs} == {"x": "2", "y": "b"}
    assert compiler.base_latency_ms == pytest.approx(2.0)
    assert compiler.attainable_gain() == pytest.approx(2.0)
    assert compiler.optimum().values == {"x": "10", "y": "a"}
    assert compiler.knobs[0].values == ("2", "4", "10", "100")  # by size, not as text
    assert compiler.build_seconds == pytest.approx(1.508)


def test_noise_is_that_of_the_recorded_runs() -> None:
    compiler = read_t4(text(RESULTS), "kernel")
    assert compiler.noise.measurement == pytest.approx(0.0082, abs=0.0005)
    seen = compiler.observe({"x": "10", "y": "a"}, np.random.default_rng(0))
    assert seen.latency_ms == pytest.approx(1.0, rel=0.04)


def test_a_configuration_that_is_not_in_the_file_does_not_build() -> None:
    compiler = read_t4(text(RESULTS[:3]), "kernel")
    with pytest.raises(BuildError):
        compiler.observe({"x": "10", "y": "b"}, np.random.default_rng(0))


@pytest.mark.parametrize(
    "spoilt",
    [
        "hello",
        "[]",
        text([]),
        text([result(1, "a", None, "compile")]),
        text([result(1, "a", 1.0), result(2, "a", 1.0, "new kind")]),
        text([result(1, "a", 1.0), {**result(2, "a", 1.0), "configuration": {"z": 1}}]),
        text([result(1, "a", -1.0)]),
    ],
)
def test_what_is_no_t4_file_is_one_clear_error(spoilt: str) -> None:
    with pytest.raises(UserInputError) as caught:
        read_t4(spoilt, "kernel")
    assert "\n" not in str(caught.value)
