from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from smart_tuner.backends.replay import ReplayBackend
from smart_tuner.engine.build import BuildRequest, Engine
from smart_tuner.errors import BuildError, NotApplied, RunError, UserInputError
from smart_tuner.knobs.knob import Knob
from smart_tuner.model.load import load_model
from smart_tuner.route.build_route import BuildRoute
from smart_tuner.simulate.compiler import SimulatedCompiler
from smart_tuner.simulate.description import Description, write_description
from smart_tuner.simulate.effects import Failure, Noise, ValueEffect
from smart_tuner.simulate.model_file import description_path, write_simulated_model
from smart_tuner.simulate.recorded import RecordedCompiler, RecordedTrial

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    Arrays = Mapping[str, npt.NDArray[Any]]

BREAKING = ("abort", "segfault", "hang", "build_error", "not_applied", "run_error", "nan")
KNOB = Knob("k", ("off", *BREAKING, "fast", "lossy", "noop", "idle"), "off")
EFFECTS = (
    *(ValueEffect("k", value, failure=Failure(value)) for value in BREAKING),
    ValueEffect("k", "fast", log_latency=-0.5, log_build=0.1),
    ValueEffect("k", "lossy", loss=0.25e-3),
    ValueEffect("k", "noop", noop=True),
)
COMPILER = SimulatedCompiler(
    (KNOB, Knob("other", ("on", "off"), "on")),
    base_latency_ms=3.0,
    effects=EFFECTS,
    noise=Noise(build=0.01, measurement=0.001, spike_rate=0),
    build_seconds=40.0,
)
X = {"x": np.linspace(-1, 1, 16, dtype=np.float32).reshape(1, 16)}


def build(path: Path, value: str = "off", *, reference: bool = False) -> Engine:
    route = BuildRoute.of({"k": value}, {"k": "off"})
    workdir = Path(tempfile.mkdtemp(dir=path.parent))
    return ReplayBackend().build(BuildRequest(path, route, reference=reference), workdir)


def infer(engine: Engine, inputs: Arrays = X) -> dict[str, npt.NDArray[Any]]:
    with ReplayBackend().load(engine) as runner:
        return dict(runner.infer(inputs))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_simulated_model(tmp_path, COMPILER)


def test_knobs_are_those_of_the_description(path: Path) -> None:
    database = ReplayBackend().knobs(load_model(path))
    assert [knob.name for knob in database] == ["k", "other"]
    write_simulated_model(path.parent, SimulatedCompiler(COMPILER.knobs))
    assert ReplayBackend().knobs(load_model(path)).tuner_version != database.tuner_version


def test_without_a_model_it_says_what_is_needed() -> None:
    with pytest.raises(UserInputError, match=r"replay\.json"):
        ReplayBackend().knobs()


def test_it_says_that_it_is_simulated() -> None:
    assert ReplayBackend().platform().device == "simulated"


def test_build_time_is_virtual(path: Path) -> None:
    assert build(path).build_seconds == 40
    assert build(path, "fast").build_seconds > 40


def test_equal_engines_have_equal_fingerprints(path: Path) -> None:
    default = build(path).fingerprint
    assert build(path, "noop").fingerprint == default
    assert build(path, "idle").fingerprint != default
    assert build(path, "idle").fingerprint == build(path, "idle").fingerprint


def test_rebuilds_are_other_files_with_other_luck(path: Path) -> None:
    medians = set()
    digests = set()
    for _ in range(4):
        engine = build(path, "fast")
        digests.add(engine.sha256)
        with ReplayBackend().load(engine) as runner:
            runner.infer(X)
            medians.add(float(np.median(runner.time_block(200))))
    assert len(digests) == 4
    assert max(medians) / min(medians) > 1.0005
    assert np.mean(list(medians)) == pytest.approx(3 * np.exp(-0.5), rel=0.05)


def test_a_seed_makes_everything_repeatable(tmp_path: Path) -> None:
    path = write_simulated_model(tmp_path, COMPILER, seed=5)
    seen = []
    for _ in range(2):
        with ReplayBackend().load(build(path, "fast")) as runner:
            runner.infer(X)
            seen.append(runner.time_block(5))
    assert seen[0] == seen[1]


def test_losses_have_the_stated_size(path: Path) -> None:
    reference = infer(build(path, reference=True))["y"].astype(np.float64)
    np.testing.assert_array_equal(infer(build(path))["y"], reference)
    difference = np.abs(infer(build(path, "lossy"))["y"] - reference)
    assert difference.max() == pytest.approx(0.25e-3, rel=1e-3)
    assert difference.mean() == pytest.approx(0.25e-3, rel=1e-3)
    assert difference.max() <= 0.25e-3


def test_nan_values_give_nan(path: Path) -> None:
    assert np.isnan(infer(build(path, "nan"))["y"]).all()


def test_outputs_depend_on_the_inputs(path: Path) -> None:
    engine = build(path)
    other = {"x": X["x"] + np.float32(1)}
    assert not np.array_equal(infer(engine)["y"], infer(engine, other)["y"])
    np.testing.assert_array_equal(infer(engine)["y"], infer(build(path))["y"])


def test_failures_are_the_errors_of_a_real_backend(path: Path) -> None:
    with pytest.raises(BuildError):
        build(path, "build_error")
    with pytest.raises(NotApplied):
        build(path, "not_applied")
    with pytest.raises(RunError):
        infer(build(path, "run_error"))


def test_reference_builds_ignore_the_base(path: Path, tmp_path: Path) -> None:
    request = BuildRequest(path, base={"k": "build_error"}, reference=True)
    (tmp_path / "r").mkdir()
    engine = ReplayBackend().build(request, tmp_path / "r")
    np.testing.assert_array_equal(infer(engine)["y"], infer(build(path))["y"])


def test_the_base_lies_under_the_route(path: Path, tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    request = BuildRequest(path, BuildRoute((("other", "off"),)), base={"k": "lossy"})
    engine = ReplayBackend().build(request, tmp_path / "b")
    assert not np.array_equal(infer(engine)["y"], infer(build(path))["y"])
    with pytest.raises(UserInputError, match="unheard_of"):
        ReplayBackend().build(BuildRequest(path, base={"unheard_of": "1"}), tmp_path)


_BUILD = """
import sys
from pathlib import Path
from smart_tuner.backends.replay import ReplayBackend
from smart_tuner.engine.build import BuildRequest
from smart_tuner.route.build_route import BuildRoute
print("building", flush=True)
request = BuildRequest(Path(sys.argv[1]), BuildRoute((("k", sys.argv[2]),)))
ReplayBackend().build(request, Path(sys.argv[1]).parent)
"""


def start(path: Path, value: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", _BUILD, str(path), value],
        stdout=subprocess.PIPE,
        text=True,
        cwd=path.parent,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "building\n"
    return process


@pytest.mark.parametrize(
    ("value", "number"), [("abort", signal.SIGABRT), ("segfault", signal.SIGSEGV)]
)
def test_crashing_values_end_the_process(path: Path, value: str, number: signal.Signals) -> None:
    before = sorted(path.parent.iterdir())
    with start(path, value) as process:
        assert process.wait(timeout=30) == -number
    assert sorted(path.parent.iterdir()) == before


def test_hanging_values_hang(path: Path) -> None:
    with start(path, "hang") as process:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=1)
        process.kill()


def test_recorded_trials_are_replayed(tmp_path: Path) -> None:
    trials = (
        RecordedTrial({}, "feasible", 2.0, 0.0, 7.0),
        RecordedTrial({"k": "fast"}, "feasible", 1.0, 0.125),
        RecordedTrial({"k": "lossy"}, "not_applied"),
    )
    path = write_simulated_model(tmp_path, RecordedCompiler((KNOB,), trials))
    assert build(path).build_seconds == 7
    with ReplayBackend().load(build(path, "fast")) as runner:
        y = runner.infer(X)["y"]
        assert np.median(runner.time_block(100)) == pytest.approx(1.0, rel=0.01)
    np.testing.assert_allclose(y - infer(build(path))["y"], 0.125, atol=1e-6)
    with pytest.raises(NotApplied):
        build(path, "lossy")
    with pytest.raises(BuildError, match="-k=idle"):
        build(path, "idle")
    assert infer(build(path, reference=True))["y"].shape == (1, 16)


def test_a_missing_description_is_named(path: Path) -> None:
    engine = build(path)
    description_path(path).unlink()
    with pytest.raises(UserInputError, match=r"model\.onnx\.replay\.json"):
        build(path)
    with pytest.raises(RunError, match=r"model\.onnx\.replay\.json"):
        infer(engine)


def test_a_changed_engine_file_does_not_run(path: Path) -> None:
    engine = build(path)
    document = json.loads(engine.path.read_text())
    engine.path.write_text(json.dumps(document | {"build_seed": 1}))
    with pytest.raises(RunError, match="digest"):
        ReplayBackend().load(engine)


def test_jitter_is_a_model_that_does_not_repeat(tmp_path: Path) -> None:
    path = write_simulated_model(tmp_path, SimulatedCompiler((KNOB,), jitter=0.01))
    with ReplayBackend().load(build(path)) as runner:
        assert not np.array_equal(runner.infer(X)["y"], runner.infer(X)["y"])
    reference = build(path, reference=True)
    np.testing.assert_array_equal(infer(reference)["y"], infer(reference)["y"])


def test_real_seconds_pass_when_asked_for(tmp_path: Path) -> None:
    slow = SimulatedCompiler((KNOB,), base_latency_ms=1000.0, build_seconds=1.0)
    path = write_simulated_model(tmp_path, slow, real_seconds=0.01)
    with ReplayBackend().load(build(path)) as runner:
        runner.infer(X)
        assert len(runner.time_block(3)) == 3


ODD_TYPES = {
    "half": TensorProto.FLOAT16,
    "brain": TensorProto.BFLOAT16,
    "count": TensorProto.INT64,
    "flag": TensorProto.BOOL,
    "word": TensorProto.STRING,
}


def odd_model(folder: Path) -> Path:
    """Write a model with free dimensions and every kind of type."""
    sizes: list[str | int | None] = ["batch", 3]
    inputs = [
        helper.make_tensor_value_info(f"{name} in", kind, sizes)
        for name, kind in ODD_TYPES.items()
    ]
    outputs = [
        helper.make_tensor_value_info(f"{name} out", kind, sizes)
        for name, kind in ODD_TYPES.items()
    ]
    nodes = [helper.make_node("Identity", [f"{name} in"], [f"{name} out"]) for name in ODD_TYPES]
    path = folder / "odd.onnx"
    onnx.save(helper.make_model(helper.make_graph(nodes, "odd", inputs, outputs)), str(path))
    description_path(path).write_text(write_description(Description(COMPILER)))
    return path


def odd_inputs(batch: int) -> dict[str, npt.NDArray[Any]]:
    kinds = {"half": np.float16, "count": np.int64, "flag": np.bool_}
    arrays: dict[str, npt.NDArray[Any]] = {
        f"{name} in": np.ones((batch, 3), kind) for name, kind in kinds.items()
    }
    brain = helper.tensor_dtype_to_np_dtype(TensorProto.BFLOAT16)
    word = np.array([["a", "b", "\u00e9"]] * batch, dtype=object)
    return arrays | {"brain in": np.ones((batch, 3), brain), "word in": word}


def test_every_type_and_free_dimensions(tmp_path: Path) -> None:
    path = odd_model(tmp_path)
    inputs = odd_inputs(5)
    exact = infer(build(path, reference=True), inputs)
    assert {array.shape for array in exact.values()} == {(5, 3)}
    for name in ODD_TYPES:
        assert exact[f"{name} out"].dtype == inputs[f"{name} in"].dtype
    broken = infer(build(path, "nan"), inputs)
    assert np.isnan(broken["half out"]).all()
    assert np.isnan(broken["brain out"].astype(np.float32)).all()
    np.testing.assert_array_equal(broken["count out"], exact["count out"])


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("half in", np.ones((5, 3), np.float32)),
        ("half in", np.ones((5, 4), np.float16)),
        ("half in", np.ones((15,), np.float16)),
        ("new", np.ones((5, 3), np.float16)),
    ],
)
def test_inputs_that_do_not_fit_do_not_run(
    tmp_path: Path, name: str, array: npt.NDArray[Any]
) -> None:
    engine = build(odd_model(tmp_path))
    with pytest.raises(RunError, match=name):
        infer(engine, odd_inputs(5) | {name: array})
