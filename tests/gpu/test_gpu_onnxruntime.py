"""ONNX Runtime's CUDA provider on a GPU: ``pytest tests/gpu/test_gpu_onnxruntime.py -m gpu``."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from onnx import helper

from smart_tuner.backends.onnxruntime import OnnxRuntimeCudaBackend
from smart_tuner.backends.onnxruntime.cuda_options import CUDA_OPTIONS, PROVIDER
from smart_tuner.devices.gpu import read_gpu
from smart_tuner.engine.build import BuildRequest
from smart_tuner.errors import BuildError, RunError
from smart_tuner.measure.stop_rule import StopRule
from smart_tuner.model.load import load_model
from smart_tuner.model.prepare import InputOptions, prepare_workload
from smart_tuner.report.export.runner_onnxruntime import session_runner
from smart_tuner.route.build_route import BuildRoute
from smart_tuner.testing.backend_contract import BackendContract
from smart_tuner.trial.evaluate import Evaluator, EvaluatorOptions
from smart_tuner.trial.trial import TrialOutcome
from smart_tuner.validate.constraint import AccuracyConstraint
from tests.gpu.comparing import assert_close, run_on_processor
from tests.gpu.gpu_models import FLOAT, NETWORKS, random, save

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from smart_tuner.backends.onnxruntime.runner import OnnxRuntimeRunner
    from smart_tuner.engine.backend import Backend, Tensors
    from smart_tuner.model.spec import ModelSpec

    Open = Callable[..., OnnxRuntimeRunner]

pytestmark = pytest.mark.gpu

NAME = "onnxruntime-cuda"
EXACT = {"cuda:use_tf32": "0"}
RULE = StopRule.fixed(4, block_seconds=0.02)


@pytest.fixture(scope="module")
def onnxruntime_cuda() -> OnnxRuntimeCudaBackend:
    return OnnxRuntimeCudaBackend()


@pytest.fixture
def opened(
    onnxruntime_cuda: OnnxRuntimeCudaBackend,
    models: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Open:
    def load(name: str, **options: str) -> OnnxRuntimeRunner:
        named = {key if key == "io" else f"cuda:{key}": value for key, value in options.items()}
        base = {**EXACT, **named}
        request = BuildRequest(models / f"{name}.onnx", base=base)
        return onnxruntime_cuda.load(
            onnxruntime_cuda.build(request, tmp_path_factory.mktemp(name))
        )

    return load


class TestContract(BackendContract):
    @pytest.fixture
    def backend(self, onnxruntime_cuda: OnnxRuntimeCudaBackend) -> Backend:
        return onnxruntime_cuda

    @pytest.fixture
    def model(self, models: Path) -> ModelSpec:
        return load_model(models / "conv.onnx")

    @pytest.fixture
    def inputs(self) -> Tensors:
        return NETWORKS["conv"].inputs[0]


@pytest.mark.parametrize("graph", ["0", "1"])
@pytest.mark.parametrize("io", ["host", "device"])
def test_outputs_are_right_for_every_shape_and_after_timing(
    opened: Open, models: Path, graph: str, io: str
) -> None:
    inputs = [*NETWORKS["mlp"].inputs, NETWORKS["mlp"].inputs[0]]
    with opened("mlp", enable_cuda_graph=graph, io=io) as runner:
        for given in inputs:
            wanted = run_on_processor(models / "mlp.onnx", given)
            assert_close(runner.infer(given), wanted)
            samples = runner.time_block(20)
            assert 0.001 < np.median(samples) < 50
            assert_close(runner.outputs(), wanted)


@pytest.mark.parametrize("graph", ["0", "1"])
def test_a_replayed_graph_reads_new_inputs(opened: Open, models: Path, graph: str) -> None:
    with opened("conv", enable_cuda_graph=graph) as runner:
        for seed in (0, 1, 2):
            given = {"x": random((4, 3, 224, 224), seed)}
            assert_close(runner.infer(given), run_on_processor(models / "conv.onnx", given))


def test_a_graph_saves_the_launches(opened: Open) -> None:
    medians = []
    for graph in ("0", "1"):
        with opened("conv", enable_cuda_graph=graph, io="device") as runner:
            runner.infer(NETWORKS["conv"].inputs[0])
            runner.time_block(50)
            medians.append(float(np.median(runner.time_block(200))))
    assert medians[1] < medians[0]


def test_a_network_with_work_for_the_processor_is_not_captured(
    onnxruntime_cuda: OnnxRuntimeCudaBackend, tmp_path: Path
) -> None:
    path = tmp_path / "unique.onnx"
    save(
        path,
        [helper.make_node("Unique", ["x"], ["y"]), helper.make_node("Relu", ["y"], ["z"])],
        [("x", FLOAT, [8])],
        [("z", FLOAT, ["count"])],
    )
    request = BuildRequest(path, base={"cuda:enable_cuda_graph": "1"})
    with pytest.raises((BuildError, RunError), match=r"(?i)graph|captur") as caught:
        onnxruntime_cuda.load(onnxruntime_cuda.build(request, tmp_path)).infer({"x": random((8,))})
    assert "\n" not in str(caught.value)


def test_tf32_is_a_knob_that_epsilon_can_refuse(models: Path, tmp_path: Path) -> None:
    path = tmp_path / "wide.onnx"
    write_wide(path)
    trials = tried(path, tmp_path, EXACT, ("-cuda:use_tf32=1", "-cuda:enable_cuda_graph=1"))
    tf32, graph = trials
    assert tf32.outcome is TrialOutcome.INFEASIBLE, tf32.message
    assert graph.outcome is TrialOutcome.FEASIBLE, graph.message
    assert 0.2 < graph.comparisons[0].gain < 50


def test_a_trial_leaves_no_memory_on_the_device(models: Path, tmp_path: Path) -> None:
    before = read_gpu().memory_used_bytes
    (trial,) = tried(models / "conv.onnx", tmp_path, EXACT, ("-cuda:prefer_nhwc=1",))
    assert trial.outcome in {TrialOutcome.FEASIBLE, TrialOutcome.INFEASIBLE}, trial.message
    after = read_gpu().memory_used_bytes
    assert before is not None
    assert after is not None
    assert after <= before + (64 << 20)


def test_too_little_memory_is_said_in_one_line(
    onnxruntime_cuda: OnnxRuntimeCudaBackend, tmp_path: Path
) -> None:
    path = tmp_path / "huge.onnx"
    write_huge(path)
    engine = onnxruntime_cuda.build(BuildRequest(path), tmp_path)
    with (
        onnxruntime_cuda.load(engine) as runner,
        pytest.raises(RunError, match="out of memory") as caught,
    ):
        runner.infer({"x": np.ones((1,), np.float32)})
    assert "\n" not in str(caught.value)


def test_without_a_visible_gpu_the_remedy_is_named(models: Path, tmp_path: Path) -> None:
    code = (
        "from smart_tuner.backends.onnxruntime import OnnxRuntimeCudaBackend\n"
        "from smart_tuner.errors import EnvironmentNotFit\n"
        "try: OnnxRuntimeCudaBackend().platform()\n"
        "except EnvironmentNotFit as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "CUDA_VISIBLE_DEVICES" in done.stdout


def test_what_is_exported_of_a_graph_follows_new_inputs(
    onnxruntime_cuda: OnnxRuntimeCudaBackend, models: Path, tmp_path: Path
) -> None:
    base = {**EXACT, "cuda:enable_cuda_graph": "1"}
    request = BuildRequest(models / "mlp.onnx", base=base)
    engine = onnxruntime_cuda.build(request, tmp_path)
    (tmp_path / "load_winner.py").write_text(engine.loader)
    (tmp_path / "run_winner.py").write_text(session_runner("engine.json", on_gpu=True))
    code = (
        "import numpy, run_winner\nwinner = run_winner.Winner()\n"
        "given = numpy.load('given.npz')\n"
        "for _ in range(3):\n"
        "    found = {name: winner({'x': given[name]})['y'] for name in given}\n"
        "numpy.savez('found.npz', **found)\n"
    )
    given = {f"x{index}": each["x"] for index, each in enumerate(NETWORKS["mlp"].inputs)}
    given["again"] = random(given["x0"].shape, 9)
    arrays: Any = given
    np.savez(tmp_path / "given.npz", **arrays)
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    with np.load(tmp_path / "found.npz") as found:
        for name, x in given.items():
            assert_close({"y": found[name]}, run_on_processor(models / "mlp.onnx", {"x": x}))


def test_what_knobs_call_default_is_the_providers_own(models: Path) -> None:
    import onnxruntime

    session = onnxruntime.InferenceSession(str(models / "mlp.onnx"), providers=[PROVIDER])
    own = session.get_provider_options()[PROVIDER]
    plain = {"true": "1", "false": "0"}
    differ = {
        option.key: own[option.key]
        for option in CUDA_OPTIONS
        if option.key in own
        and plain.get(own[option.key].lower(), own[option.key]) != option.default
    }
    assert differ == {}


def test_the_platform_names_the_very_gpu(onnxruntime_cuda: OnnxRuntimeCudaBackend) -> None:
    platform = onnxruntime_cuda.platform()
    assert platform.details["uuid"].startswith("GPU-")
    assert platform.driver.startswith("NVIDIA ")
    assert platform.backend_version.startswith("onnxruntime-gpu")


def tried(
    path: Path, folder: Path, base: dict[str, str], routes: tuple[str, ...]
) -> tuple[Any, ...]:
    """Try routes against a base, under a close epsilon."""
    constraint = AccuracyConstraint(metric="linf", epsilon=1e-3)
    workload, _ = prepare_workload(load_model(path), InputOptions(), folder / "references")
    options: Any = EvaluatorOptions(NAME, base, constraint)
    with Evaluator(workload, options, folder / "study") as evaluator:
        evaluator.make_references()
        report = evaluator.check_baseline(RULE)
        assert report.trial.outcome is TrialOutcome.FEASIBLE, report.trial.message
        assert evaluator.platform.details["uuid"].startswith("GPU-")
        return tuple(
            evaluator.evaluate(
                BuildRoute((tuple(route.removeprefix("-").split("=")),)),  # type: ignore[arg-type]
                folder / "study" / "trials" / str(number),
                RULE,
            )
            for number, route in enumerate(routes)
        )


def write_wide(path: Path) -> None:
    """A product of long rows: what ten bits of mantissa lose adds up."""
    save(
        path,
        [helper.make_node("MatMul", ["x", "matrix"], ["y"])],
        [("x", FLOAT, [256, 2048])],
        [("y", FLOAT, [256, 512])],
        {"matrix": random((2048, 512))},
    )


def write_huge(path: Path) -> None:
    """One number as a tensor of 400 GB."""
    save(
        path,
        [helper.make_node("Expand", ["x", "shape"], ["y"])],
        [("x", FLOAT, [1])],
        [("y", FLOAT, [100_000, 1_000_000])],
        {"shape": np.array([100_000, 1_000_000])},
    )
