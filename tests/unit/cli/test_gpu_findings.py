"""The right sentence and next step on every kind of machine, from facts that are made up."""

from __future__ import annotations

import dataclasses

import pytest

from smart_tuner.cli.finding import Finding
from smart_tuner.cli.gpu_findings import GPU, CompilerFacts, GpuFacts, gpu_findings
from smart_tuner.devices.gpu import GpuState

RTX, TRT = "backend tensorrt-rtx", "backend tensorrt"
NO_TRT, NO_RTX = CompilerFacts("tensorrt"), CompilerFacts("tensorrt-rtx")
STATE = GpuState(
    name="NVIDIA H200",
    uuid="GPU-1",
    driver="570.1",
    cuda_version="12.8",
    max_sm_clock_mhz=1980,
    memory_total_bytes=140 << 30,
)
NO_GPU_REASON = "tensorrt 11.1 is installed, but engines cannot run here: no driver."


def on(
    *compilers: CompilerFacts, state: GpuState | None = STATE, cuda: bool = False
) -> dict[str, Finding]:
    names = ("NVIDIA H200",) if state else ()
    states = (state,) if state else ()
    found = list(gpu_findings(GpuFacts(names, states, compilers, has_cuda_runtime=cuda)))
    assert len({finding.subject for finding in found}) == len(found)
    return {finding.subject: finding for finding in found}


def test_no_driver_and_no_compiler() -> None:
    found = on(NO_TRT, NO_RTX, state=None)
    assert found[TRT].state == "note"
    assert "no GPU to run it on" in found[TRT].text
    assert "knobs --database" in found[TRT].text
    assert "nvidia-smi" in found[GPU].text
    assert "--gpus all" in found[GPU].text
    assert "the CPU is tuned" in found[GPU].text


def test_a_driver_but_no_compiler() -> None:
    found = on(NO_TRT, NO_RTX)
    assert [found[name].state for name in (TRT, RTX)] == ["missing", "missing"]
    assert "`pip install 'smart-tuner[tensorrt]'`" in found[TRT].text
    assert "`pip install 'smart-tuner[tensorrt-rtx]'`" in found[RTX].text
    assert found[GPU].text == "NVIDIA H200, driver 570.1, CUDA up to 12.8, 140 GiB"


def test_rtx_only() -> None:
    found = on(NO_TRT, CompilerFacts("tensorrt-rtx", True, "tensorrt-rtx 1.7", 16))
    assert found[RTX] == Finding(
        RTX, "ok", "tensorrt-rtx 1.7, 16 knobs of its builder, as it has no build routes"
    )
    assert found[TRT].state == "note"
    assert "as well: `pip install 'smart-tuner[tensorrt]'`" in found[TRT].text


def test_an_old_compiler_has_no_build_routes_yet() -> None:
    found = on(CompilerFacts("tensorrt", True, "tensorrt 8.6.0", 14), NO_RTX)
    assert found[TRT].state == "ok"
    assert "tensorrt 8.6.0, 14 knobs of its builder" in found[TRT].text
    assert "11.1 on Linux: `pip install -U 'smart-tuner[tensorrt]'`" in found[TRT].text


def test_a_new_compiler_has_them() -> None:
    found = on(CompilerFacts("tensorrt", True, "tensorrt 11.1.0", 225, 209), NO_RTX)
    text = "tensorrt 11.1.0, 225 knobs, 209 of them build routes"
    assert found[TRT] == Finding(TRT, "ok", text)


def test_a_compiler_without_a_gpu_builds_only() -> None:
    there = CompilerFacts("tensorrt", True, "tensorrt 11.1.0", 225, 209, NO_GPU_REASON)
    found = on(there, NO_RTX, state=None)
    assert found[TRT].state == "note", "it does not make a machine fit"
    assert "builds only" in found[TRT].text
    assert on(there, NO_RTX)[TRT] == Finding(TRT, "missing", NO_GPU_REASON)


def test_a_compiler_that_does_not_load_says_why() -> None:
    broken = CompilerFacts("tensorrt", is_installed=True, problem="libnvinfer.so is missing")
    for state in (None, STATE):
        assert on(broken, state=state)[TRT] == Finding(TRT, "missing", "libnvinfer.so is missing")


@pytest.mark.parametrize(
    ("facts", "subject", "holds"),
    [
        ({}, f"{GPU}, clocks", "sudo nvidia-smi -i GPU-1 -lgc"),
        ({"is_mig": True}, f"{GPU}, slices", "MIG"),
        ({"is_mps": True}, f"{GPU}, sharing", "MPS"),
        ({"processes": (1,)}, f"{GPU}, load", "busy with 1 other"),
    ],
)
def test_what_makes_a_gpu_hard_to_measure_on_is_said(
    facts: dict[str, object], subject: str, holds: str
) -> None:
    found = on(NO_TRT, state=dataclasses.replace(STATE, **facts))  # type: ignore[arg-type]
    assert found[subject].state == "note"
    assert holds in found[subject].text


def test_what_is_not_known_of_a_gpu_is_not_said() -> None:
    bare = GpuFacts(("Orin",), (GpuState(name="Orin"),))
    assert [finding.subject for finding in gpu_findings(bare)] == [GPU, "ONNX Runtime on the GPU"]
    without_nvml = list(gpu_findings(GpuFacts(("Orin",))))
    assert "`pip install 'smart-tuner[gpu]'`" in without_nvml[0].text


def test_onnx_runtime_on_a_gpu() -> None:
    subject = "ONNX Runtime on the GPU"
    assert "onnxruntime-gpu" in on(NO_TRT)[subject].text
    assert on(NO_TRT, cuda=True)[subject].state == "ok"
