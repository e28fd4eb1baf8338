from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from smart_tuner.errors import RunError
from tests.fake_tensorrt.fake_cuda import Status
from tests.unit.backends.tensorrt.running import ROW, Bench, bench, doubling

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def gpu(tmp_path: Path) -> Bench:
    return bench(tmp_path)


def test_a_context_that_does_not_fit_names_both_sizes(tmp_path: Path) -> None:
    gpu = bench(tmp_path, memory_bytes=1000)
    with pytest.raises(
        RunError, match=r"out of memory: a context needs 5000 bytes, 1000 are free"
    ):
        gpu.open(doubling(context_bytes=5000))


def test_buffers_that_do_not_fit_name_both_sizes(tmp_path: Path) -> None:
    gpu = bench(tmp_path, memory_bytes=1030)
    with (
        gpu.open(doubling()) as runner,
        pytest.raises(
            RunError,
            match=r"out of memory: allocating 16 bytes for x .*; 6 of 1030 bytes are free",
        ),
    ):
        runner.infer({"x": ROW})


def test_after_too_little_memory_the_process_can_go_on(tmp_path: Path) -> None:
    gpu = bench(tmp_path, memory_bytes=1030)
    with gpu.open(doubling()) as runner:
        with pytest.raises(RunError, match="out of memory"):
            runner.infer({"x": ROW})
        gpu.cuda.memory_bytes = 4096
        runner.infer({"x": ROW})


@pytest.mark.parametrize("launch", ["auto", "graph", "enqueue"])
def test_a_broken_context_ends_everything_with_the_first_error(gpu: Bench, launch: str) -> None:
    plan = doubling()
    with gpu.open(plan, launch=launch) as runner:
        runner.infer({"x": ROW})
        plan.breaks = lambda: gpu.cuda.breaks(Status.cudaErrorIllegalAddress)
        with pytest.raises(RunError, match=r"cudaErrorIllegalAddress.*is lost"):
            runner.time_block(3)
        calls = len(gpu.cuda.log)
        for use in (
            lambda: runner.infer({"x": ROW}),
            lambda: runner.time_block(1),
            runner.outputs,
        ):
            with pytest.raises(RunError, match=r"cudaErrorIllegalAddress.*is lost"):
                use()
        assert len(gpu.cuda.log) == calls


def test_an_engine_that_breaks_at_once_is_not_taken_for_one_without_graphs(gpu: Bench) -> None:
    plan = doubling(breaks=lambda: gpu.cuda.breaks(Status.cudaErrorIllegalAddress))
    with gpu.open(plan) as runner:
        with pytest.raises(RunError, match="cudaErrorIllegalAddress"):
            runner.infer({"x": ROW})
        assert runner.decided == {}


def test_a_second_engine_has_its_own_reasons(gpu: Bench) -> None:
    with gpu.open(doubling()) as first:
        first.infer({"x": ROW})
        with (
            gpu.open(doubling()) as second,
            pytest.raises(RunError, match=r"shape \(2, 4\) does not fit"),
        ):
            second.infer({"x": ROW.repeat(2, axis=0)})


def test_a_passing_error_is_passing(gpu: Bench) -> None:
    with gpu.open(doubling()) as runner:
        gpu.cuda.fail["cudaMemcpyAsync"] = Status.cudaErrorInvalidValue
        with pytest.raises(
            RunError, match=r"copying failed: cudaErrorInvalidValue \(words for 1\)"
        ):
            runner.infer({"x": ROW})
        runner.infer({"x": ROW})
