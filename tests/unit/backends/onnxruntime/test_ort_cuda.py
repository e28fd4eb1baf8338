"""The CUDA provider as far as a machine without a GPU shows it: its runner on the processor."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from onnx import TensorProto, helper

from smart_tuner.backends.onnxruntime import OnnxRuntimeBackend, OnnxRuntimeCudaBackend
from smart_tuner.backends.onnxruntime.device_runner import DeviceRunner
from smart_tuner.backends.onnxruntime.loader import loader_source
from smart_tuner.backends.onnxruntime.runtime import runtime_version
from smart_tuner.backends.onnxruntime.settings import SessionSettings
from smart_tuner.engine.backend import installed_backends
from smart_tuner.engine.build import BuildRequest
from smart_tuner.errors import EnvironmentNotFit, RunError, UserInputError

if TYPE_CHECKING:
    from collections.abc import Callable

    SaveModel = Callable[..., Path]

FLOAT = TensorProto.FLOAT
SETTINGS = SessionSettings(intra_threads=1)


@pytest.fixture
def doubling(save_model: SaveModel) -> Path:
    return save_model(
        [helper.make_node("Add", ["x", "x"], ["y"])],
        [("x", FLOAT, ["rows", 4])],
        [("y", FLOAT, ["rows", 4])],
    )


def rows(count: int, value: float = 1.0) -> dict[str, np.ndarray]:
    return {"x": np.full((count, 4), value, np.float32)}


@pytest.mark.parametrize("io", ["host", "device"])
def test_tensors_stay_in_place_and_every_shape_has_its_own(doubling: Path, io: str) -> None:
    with DeviceRunner(doubling, replace(SETTINGS, io=io)) as runner:
        for count, value in ((2, 1.0), (3, 5.0), (2, 7.0)):
            outputs = runner.infer(rows(count, value))
            np.testing.assert_array_equal(outputs["y"], np.full((count, 4), 2 * value))
            assert all(sample > 0 for sample in runner.time_block(4))
            np.testing.assert_array_equal(runner.outputs()["y"], outputs["y"])


def test_what_a_run_does_not_write_stays_poisoned(doubling: Path) -> None:
    with DeviceRunner(doubling, SETTINGS) as runner:
        runner.infer(rows(2))
        runner._poison()
        assert np.isnan(runner.outputs()["y"]).all()


def test_outputs_are_copies(doubling: Path) -> None:
    with DeviceRunner(doubling, SETTINGS) as runner:
        first = runner.infer(rows(2, 1.0))["y"]
        runner.infer(rows(2, 3.0))
        assert (first == 2).all()


def test_wrong_inputs_are_named(doubling: Path) -> None:
    with DeviceRunner(doubling, SETTINGS) as runner:
        with pytest.raises(RunError, match="input x is missing"):
            runner.infer({})
        with pytest.raises(RunError, match="float32 is needed"):
            runner.infer({"x": np.ones((2, 4), np.float64)})
        with pytest.raises(RunError, match="needs an infer"):
            runner.time_block(1)


def test_text_is_refused(save_model: SaveModel) -> None:
    text = TensorProto.STRING
    model = save_model(
        [helper.make_node("Identity", ["x"], ["y"])], [("x", text, [2])], [("y", text, [2])]
    )
    with pytest.raises(RunError, match="x is text"):
        DeviceRunner(model, SETTINGS)


def test_the_backend_is_installed() -> None:
    assert "onnxruntime-cuda" in installed_backends()


def test_without_a_gpu_the_remedy_is_named(doubling: Path, tmp_path: Path) -> None:
    backend = OnnxRuntimeCudaBackend()
    if runtime_version().startswith("onnxruntime-gpu"):
        pytest.skip("this onnxruntime has CUDA")
    for ask in (
        backend.platform,
        backend.knobs,
        lambda: backend.build(BuildRequest(doubling), tmp_path),
    ):
        with pytest.raises(EnvironmentNotFit, match="pip install onnxruntime-gpu"):
            ask()


def test_references_come_from_the_processor(doubling: Path, tmp_path: Path) -> None:
    backend = OnnxRuntimeCudaBackend()
    base = {"cuda:use_tf32": "0", "io": "device"}
    engine = backend.build(BuildRequest(doubling, base=base, reference=True), tmp_path)
    with backend.load(engine) as runner:
        assert not isinstance(runner, DeviceRunner)
        assert (runner.infer(rows(2))["y"] == 2).all()


def test_the_processors_backend_names_the_one_for_gpus(doubling: Path, tmp_path: Path) -> None:
    request = BuildRequest(doubling, base={"provider": "cuda"})
    with pytest.raises(UserInputError, match="--backend onnxruntime-cuda"):
        OnnxRuntimeBackend().build(request, tmp_path)


def test_a_gpu_takes_half_precision_gladly_and_integers_only_when_asked() -> None:
    support = OnnxRuntimeCudaBackend().precisions({})
    assert support.values["fp16"] == ""
    assert "slow" in support.values["int8"]


def test_the_loader_of_a_graph_says_that_addresses_have_to_stay() -> None:
    def source(**options: str) -> str:
        settings = SessionSettings(provider="cuda", provider_options=tuple(options.items()))
        return loader_source(Path("model.onnx"), settings, "onnxruntime-gpu 1.31.1")

    assert "run_with_iobinding" in source(enable_cuda_graph="1")
    assert "session.run(None, inputs" in source(use_tf32="0")
    compile(source(enable_cuda_graph="1"), "load_winner.py", "exec")
