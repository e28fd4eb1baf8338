from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from smart_tuner.backends.tensorrt.runner import TensorRtRunner
from smart_tuner.devices.cuda import open_cuda
from smart_tuner.errors import RunError, UserInputError
from tests.fake_tensorrt.fake_cuda_engine import Port, fake_sdk, write_engine
from tests.unit.backends.tensorrt.running import (
    ROW,
    Bench,
    any_batch,
    bench,
    doubling,
    nonzero,
)

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def gpu(tmp_path: Path) -> Bench:
    return bench(tmp_path)


def test_it_runs(gpu: Bench) -> None:
    with gpu.open(doubling()) as runner:
        np.testing.assert_array_equal(runner.infer({"x": ROW})["y"], ROW * 2)


def test_closing_gives_all_memory_back(gpu: Bench) -> None:
    plan = nonzero(context_bytes=0)
    with gpu.open(plan) as runner:
        runner.infer({"x": ROW})
        runner.time_block(3)
        assert gpu.cuda.used_bytes > 0
        assert gpu.cuda.pinned
    assert gpu.cuda.used_bytes == 0
    assert gpu.cuda.pinned == {}
    assert gpu.cuda.events == {}
    assert gpu.cuda.graphs == {}


@pytest.mark.parametrize("launch", ["graph", "enqueue"])
@pytest.mark.parametrize("io", ["host", "device", "zero_copy"])
def test_an_engine_that_writes_nothing_leaves_poison(gpu: Bench, launch: str, io: str) -> None:
    with gpu.open(doubling(compute=lambda _: {}), launch=launch, io=io) as runner:
        assert np.isnan(runner.infer({"x": ROW})["y"]).all()
        runner.time_block(3)
        assert np.isnan(runner.outputs()["y"]).all()


def test_integers_are_poisoned_with_a_pattern(gpu: Bench) -> None:
    plan = doubling(outputs=(Port("y", (1, 4), "INT32"),), compute=lambda _: {})
    with gpu.open(plan) as runner:
        assert runner.infer({"x": ROW})["y"].tobytes() == b"\xa5" * 16


def test_outputs_are_those_of_the_block_that_ran_last(gpu: Bench) -> None:
    plan = doubling()
    with gpu.open(plan) as runner:
        runner.infer({"x": ROW})
        plan.compute = lambda arrays: {"y": arrays["x"] * 3}
        runner.time_block(5)
        np.testing.assert_array_equal(runner.outputs()["y"], ROW * 3)


@pytest.mark.parametrize("batch", [1, 4, 8, 16])
def test_each_shape_gets_memory_of_its_size(gpu: Bench, batch: int) -> None:
    with gpu.open(any_batch()) as runner:
        for rows in (2, batch, 3):
            data = np.random.default_rng(rows).random((rows, 4), np.float32)
            np.testing.assert_array_equal(runner.infer({"x": data})["y"], data * 2)


@pytest.mark.parametrize(("batch", "profile"), [(1, 0), (2, 0), (3, 2), (4, 0), (8, 1), (12, 1)])
def test_the_profile_that_is_tuned_for_the_shape_is_taken(
    gpu: Bench, batch: int, profile: int
) -> None:
    with gpu.open(any_batch()) as runner:
        runner.infer({"x": np.ones((batch, 4), np.float32)})
        assert gpu.module.loaded[-1].contexts[0].profile == profile


@pytest.mark.parametrize("batch", [5, 17])
def test_a_shape_outside_all_profiles_is_refused(gpu: Bench, batch: int) -> None:
    with gpu.open(any_batch()) as runner, pytest.raises(RunError, match=r"1x4 to 4x4.*max_shapes"):
        runner.infer({"x": np.ones((batch, 4), np.float32)})


def test_after_a_refusal_the_engine_still_runs(gpu: Bench) -> None:
    with gpu.open(doubling()) as runner:
        with pytest.raises(RunError, match="shape"):
            runner.infer({"x": np.ones((2, 4), np.float32)})
        with pytest.raises(RunError, match="infer first"):
            runner.time_block(1)
        np.testing.assert_array_equal(runner.infer({"x": ROW})["y"], ROW * 2)


def test_shapes_that_data_decide(gpu: Bench) -> None:
    with gpu.open(nonzero()) as runner:
        for row in (ROW, np.ones((1, 4), np.float32), np.zeros((1, 4), np.float32)):
            found = runner.infer({"x": row})["y"]
            np.testing.assert_array_equal(found, np.stack(np.nonzero(row)))
            runner.time_block(2)
            np.testing.assert_array_equal(runner.outputs()["y"], found)


def test_memory_for_such_a_shape_may_be_missing(tmp_path: Path) -> None:
    gpu = bench(tmp_path, memory_bytes=4096)
    big = nonzero(compute=lambda _: {"y": np.zeros((2, 4096), np.int32)}, context_bytes=0)
    with gpu.open(big) as runner, pytest.raises(RunError, match=r"out of memory.*32768 bytes"):
        runner.infer({"x": ROW})


def test_wide_integers_are_narrowed_if_they_fit(gpu: Bench) -> None:
    plan = doubling(inputs=(Port("x", (1, 4), "INT32"),), outputs=(Port("y", (1, 4), "INT32"),))
    with gpu.open(plan) as runner:
        row = np.arange(4, dtype=np.int64).reshape(1, 4)
        np.testing.assert_array_equal(runner.infer({"x": row})["y"], row * 2)
        with pytest.raises(RunError, match=r"int32, int64 was given with values .* to 4294967296"):
            runner.infer({"x": row + (1 << 32) - 3})


def test_outputs_come_in_the_type_that_the_model_declares(gpu: Bench) -> None:
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Mul", ["x", "x"], ["y"])],
        "g",
        [value("x", TensorProto.INT64, [1, 4])],
        [value("y", TensorProto.INT64, [1, 4])],
    )
    onnx.save(helper.make_model(graph), gpu.folder / "model.onnx")
    plan = doubling(inputs=(Port("x", (1, 4), "INT32"),), outputs=(Port("y", (1, 4), "INT32"),))
    with gpu.open(plan) as runner:
        found = runner.infer({"x": np.ones((1, 4), np.int64)})["y"]
        assert found.dtype == np.int64


def test_half_inputs_are_rounded(gpu: Bench) -> None:
    plan = doubling(inputs=(Port("x", (1, 4), "HALF"),), outputs=(Port("y", (1, 4), "HALF"),))
    with gpu.open(plan) as runner:
        np.testing.assert_array_equal(runner.infer({"x": ROW})["y"], (ROW * 2).astype(np.float16))


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, "input x is missing"),
        ({"x": ROW.astype(bool)}, "takes float32, bool was given"),
        ({"x": ROW.reshape(4)}, "does not fit"),
    ],
)
def test_wrong_inputs_are_refused(gpu: Bench, inputs: Any, message: str) -> None:
    with gpu.open(doubling()) as runner, pytest.raises(RunError, match=message):
        runner.infer(inputs)


def test_types_that_no_array_holds_are_refused(gpu: Bench) -> None:
    with pytest.raises(RunError, match="COMPLEX"):
        gpu.open(doubling(inputs=(Port("x", (1, 4), "COMPLEX"),)))


def test_a_closed_runner_says_so(gpu: Bench) -> None:
    with gpu.open(doubling()) as runner:
        runner.infer({"x": ROW})
    for use in (lambda: runner.infer({"x": ROW}), lambda: runner.time_block(1), runner.outputs):
        with pytest.raises(RunError, match="closed"):
            use()


def test_a_changed_file_does_not_load(gpu: Bench) -> None:
    engine = write_engine(gpu.module, doubling(), gpu.folder)
    changed = replace(engine, sha256=hashlib.sha256(b"other").hexdigest())
    with pytest.raises(RunError, match="digest"):
        TensorRtRunner(fake_sdk(gpu.module), changed, open_cuda(module=gpu.cuda))


def test_a_plan_that_the_sdk_refuses_says_why(gpu: Bench) -> None:
    engine = write_engine(gpu.module, doubling(), gpu.folder)
    gpu.module.plans.clear()
    with pytest.raises(RunError, match="magic tag"):
        TensorRtRunner(fake_sdk(gpu.module), engine, open_cuda(module=gpu.cuda))


@pytest.mark.parametrize(
    "base",
    [
        {"launch": "fast"},
        {"objective": "speed"},
        {"io": "disk"},
        {"streams": "0"},
        {"streams": "2"},
        {"streams": "many", "objective": "throughput"},
        {"cold_l2": "on", "objective": "throughput"},
        {"cold_l2": "yes"},
        {"states": "past"},
        {"states": "a:b a:c"},
        {"states": "a:b c:b"},
    ],
)
def test_wrong_settings_are_refused(gpu: Bench, base: dict[str, str]) -> None:
    with pytest.raises(
        UserInputError, match=next(reversed(base)) if len(base) == 1 else "give|leave"
    ):
        gpu.open(doubling(), **base)


@pytest.mark.parametrize(
    ("budget", "bytes_on_the_gpu"), [("off", 100), ("auto", 50), ("30", 30), ("500", 100)]
)
def test_weights_stay_on_the_host_as_the_budget_says(
    gpu: Bench, budget: str, bytes_on_the_gpu: int
) -> None:
    with gpu.open(doubling(streamable=100), weight_streaming_budget=budget):
        assert gpu.module.loaded[-1].weight_streaming_budget_v2 == bytes_on_the_gpu


def test_a_version_that_cannot_stream_weights_says_so(gpu: Bench) -> None:
    with pytest.raises(RunError, match="cannot stream weights"):
        gpu.open(doubling(), weight_streaming_budget="30")


@pytest.mark.parametrize("io", ["host", "device"])
def test_what_the_engine_reads_on_the_host_stays_there(gpu: Bench, io: str) -> None:
    plan = doubling(
        inputs=(Port("x", (1, 4)), Port("n", (1,), "INT32", "HOST")),
        compute=lambda arrays: {"y": arrays["x"] * arrays["n"]},
        context_bytes=0,
    )
    with gpu.open(plan, io=io) as runner:
        for factor in (2, 3):
            n = np.array([factor], np.int32)
            np.testing.assert_array_equal(runner.infer({"x": ROW, "n": n})["y"], ROW * factor)
        assert gpu.cuda.used_bytes == 2 * ROW.nbytes


def test_memory_counts_what_the_engine_took(gpu: Bench) -> None:
    with gpu.open(doubling(context_bytes=5000)) as runner:
        assert runner.memory_bytes is None
        runner.infer({"x": ROW})
        assert runner.memory_bytes == 5000 + 2 * ROW.nbytes
