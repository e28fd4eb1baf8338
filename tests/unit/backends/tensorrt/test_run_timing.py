from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from smart_tuner.backends.tensorrt.throughput import LEAST_RUNS, ThroughputTimer
from smart_tuner.errors import RunError
from tests.unit.backends.tensorrt.running import (
    ROW,
    Bench,
    any_batch,
    bench,
    counting,
    doubling,
    nonzero,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.fake_tensorrt.fake_cuda_engine import Plan

COPY_MS = ROW.nbytes * 1e-6
STATES = {"x": ROW, "past": np.ones((1, 4), np.float32)}


@pytest.fixture
def gpu(tmp_path: Path) -> Bench:
    return bench(tmp_path)


@pytest.mark.parametrize(
    ("objective", "io", "expected"),
    [
        ("end_to_end", "host", 1 + 2 * COPY_MS),
        ("end_to_end", "device", 1),
        ("end_to_end", "zero_copy", 1),
        ("compute", "host", 1),
        ("compute", "device", 1),
    ],
)
def test_the_objective_says_what_is_timed(
    gpu: Bench, objective: str, io: str, expected: float
) -> None:
    with gpu.open(doubling(), launch="graph", objective=objective, io=io) as runner:
        runner.infer({"x": ROW})
        assert runner.time_block(6) == pytest.approx([expected] * 6)
        assert runner.runs_per_sample == 1


def test_launching_kernel_by_kernel_takes_what_it_takes(gpu: Bench) -> None:
    with gpu.open(doubling(launch_ms=0.5), launch="enqueue", objective="compute") as runner:
        runner.infer({"x": ROW})
        assert runner.time_block(3) == pytest.approx([1.5] * 3)


@pytest.mark.parametrize("objective", ["end_to_end", "compute"])
def test_short_runs_are_timed_together(gpu: Bench, objective: str) -> None:
    plan = doubling(ms=0.01)
    with gpu.open(plan, launch="graph", objective=objective) as runner:
        runner.infer({"x": ROW})
        runner.time_block(1)
        runs = runner.runs_per_sample
        assert 40 <= runs <= 50
        before = plan.runs
        samples = runner.time_block(2 * runs + 1)
        copies = 2 * COPY_MS if objective == "end_to_end" else 0
        assert samples == pytest.approx([0.01 + copies] * 3)
        assert plan.runs - before == 3 * runs
        np.testing.assert_array_equal(runner.outputs()["y"], ROW * 2)


def test_other_inputs_are_looked_at_anew(gpu: Bench) -> None:
    plan = any_batch(ms=0.01)
    with gpu.open(plan, launch="graph") as runner:
        runner.infer({"x": ROW})
        runner.time_block(1)
        plan.ms = 1.0
        runner.infer({"x": np.ones((8, 4), np.float32)})
        runner.time_block(1)
        assert runner.runs_per_sample == 1


@pytest.mark.parametrize("count", [1, 3, 4, 5, 9])
def test_a_block_has_a_sample_for_each_run(gpu: Bench, count: int) -> None:
    plan = doubling()
    with gpu.open(plan, launch="enqueue") as runner:
        runner.infer({"x": ROW})
        runner.time_block(1)
        before = plan.runs
        assert len(runner.time_block(count)) == count
        assert plan.runs - before == count


@pytest.mark.parametrize("io", ["host", "device", "zero_copy"])
@pytest.mark.parametrize("launch", ["graph", "enqueue"])
def test_a_state_is_put_back_before_each_run(gpu: Bench, launch: str, io: str) -> None:
    with gpu.open(counting(), launch=launch, states="past:present", io=io) as runner:
        for _ in range(2):
            found = runner.infer(STATES)
            np.testing.assert_array_equal(found["present"], ROW + 1)
            assert found["y"] == ROW.sum() + 4
            runner.time_block(5)
            assert runner.outputs()["y"] == ROW.sum() + 4


def test_a_state_is_neither_copied_nor_put_back_in_the_timed_part(gpu: Bench) -> None:
    plan = counting()
    with gpu.open(plan, launch="graph", states="past:present") as runner:
        runner.infer(STATES)
        assert runner.time_block(3) == pytest.approx([1 + COPY_MS + 4e-6] * 3)


def test_short_runs_with_a_state_are_timed_one_by_one(gpu: Bench) -> None:
    with gpu.open(counting(ms=0.01), launch="graph", states="past:present") as runner:
        runner.infer(STATES)
        assert len(runner.time_block(7)) == 7
        assert runner.outputs()["y"] == ROW.sum() + 4


def test_an_output_that_the_engine_writes_over_an_input_is_a_state(gpu: Bench) -> None:
    plan = counting()
    plan.outputs = (plan.outputs[0].__class__("present", (1, 4), alias="past"), plan.outputs[1])
    with gpu.open(plan) as runner:
        runner.infer(STATES)
        runner.time_block(4)
        assert runner.outputs()["y"] == ROW.sum() + 4


@pytest.mark.parametrize(
    ("states", "message"),
    [
        ("x:nothing", "no output 'nothing'"),
        ("nothing:y", "no input 'nothing'"),
        ("past:y", "a state keeps its size"),
    ],
)
def test_states_that_do_not_match_are_refused(gpu: Bench, states: str, message: str) -> None:
    with pytest.raises(RunError, match=message), gpu.open(counting(), states=states) as runner:
        runner.infer(STATES)


def test_a_cold_cache_is_overwritten_between_runs_and_not_timed(gpu: Bench) -> None:
    with gpu.open(doubling(ms=0.01), launch="graph", cold_l2="on", io="device") as runner:
        runner.infer({"x": ROW})
        gpu.cuda.log.clear()
        assert runner.time_block(5) == pytest.approx([0.01] * 5)
        # One for each run, one for the poison.
        assert gpu.cuda.log.count("cudaMemsetAsync") == 6


@pytest.mark.parametrize(
    ("plan", "decided"),
    [
        (doubling(), "graph"),
        (doubling(launch_ms=-0.5), "enqueue"),
        (doubling(is_capturable=False), "enqueue"),
        (nonzero(), "enqueue"),
    ],
    ids=["faster", "slower", "not to be captured", "shape of data"],
)
def test_the_launch_is_decided_on_first_use(gpu: Bench, plan: Plan, decided: str) -> None:
    with gpu.open(plan) as runner:
        assert runner.decided == {}
        runner.infer({"x": ROW})
        assert runner.decided == {"launch": decided}
        assert np.isfinite(runner.time_block(3)).all()


@pytest.mark.parametrize(
    ("plan", "reason"),
    [(doubling(is_capturable=False), "not permitted"), (nonzero(), "output y depends on data")],
    ids=["not to be captured", "shape of data"],
)
def test_what_cannot_be_captured_is_refused_under_graph(
    gpu: Bench, plan: Plan, reason: str
) -> None:
    with gpu.open(plan, launch="graph") as runner:
        with pytest.raises(RunError, match=rf"cannot be captured in a CUDA graph.*{reason}"):
            runner.infer({"x": ROW})
        assert not gpu.cuda.recordings


def test_a_graph_belongs_to_its_shapes(gpu: Bench) -> None:
    with gpu.open(any_batch(), launch="graph") as runner:
        for rows in (1, 2, 2, 1):
            data = np.full((rows, 4), rows, np.float32)
            np.testing.assert_array_equal(runner.infer({"x": data})["y"], data * 2)
            runner.time_block(3)
            np.testing.assert_array_equal(runner.outputs()["y"], data * 2)
    assert gpu.cuda.log.count("cudaGraphInstantiate") == 2 * 3


@pytest.mark.parametrize("launch", ["graph", "enqueue"])
@pytest.mark.parametrize("streams", [1, 3])
def test_throughput_keeps_all_streams_busy(gpu: Bench, launch: str, streams: int) -> None:
    plan = doubling()
    with gpu.open(plan, launch=launch, objective="throughput", streams=str(streams)) as runner:
        runner.infer({"x": ROW})
        assert len(gpu.module.loaded[-1].contexts) == streams
        before = plan.runs
        samples = runner.time_block(10)
        assert plan.runs - before == 10
        assert len(samples) == 1
        assert samples[0] > 0
        np.testing.assert_array_equal(runner.outputs()["y"], ROW * 2)


def test_a_throughput_has_a_tail_once_there_are_runs_enough(gpu: Bench) -> None:
    with gpu.open(doubling(), objective="throughput", streams="2") as runner:
        runner.infer({"x": ROW})
        runner.time_block(LEAST_RUNS - 1)
        few = runner.p99_ms
        (mean,) = runner.time_block(2 * LEAST_RUNS)
        many = runner.p99_ms
    assert few is None
    assert many is not None
    assert 0 < mean <= many
    with gpu.open(doubling()) as runner:
        runner.infer({"x": ROW})
        runner.time_block(10)
        assert runner.p99_ms is None


def test_throughput_is_the_window_over_its_runs(gpu: Bench) -> None:
    with gpu.open(doubling(), objective="throughput", streams="2") as runner:
        runner.infer({"x": ROW})
        clock = iter([1_000_000, 21_000_000]).__next__
        timer = ThroughputTimer(runner._cuda, runner._lanes, clock)
        assert timer.time(8) == (20 / 8,)
        timer.close()
