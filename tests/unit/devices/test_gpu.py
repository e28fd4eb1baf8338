from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from smart_tuner.devices.gpu import (
    GpuMeter,
    GpuReading,
    GpuState,
    lock_clocks_command,
    read_gpu,
    read_gpus,
)
from smart_tuner.devices.nvml import Nvml

NO_SUCH_PID = 1 << 30


class NvmlError(Exception):
    pass


def refuse(*_: object) -> Any:
    raise NvmlError


def whole() -> dict[str, Any]:
    """A GPU that tells everything."""
    return {
        "NVMLError": NvmlError,
        "NVML_CLOCK_SM": 1,
        "NVML_CLOCK_MEM": 2,
        "NVML_TEMPERATURE_GPU": 0,
        "nvmlDeviceGetCount": lambda: 2,
        "nvmlDeviceGetHandleByIndex": lambda index: index,
        "nvmlDeviceGetHandleByUUID": lambda uuid: {"GPU-1": 1, "MIG-7": 0}.get(uuid) or refuse(),
        "nvmlDeviceGetHandleByPciBusId": lambda bus: {"0000:3B:00.0": 1}.get(bus) or refuse(),
        "nvmlDeviceGetName": lambda _: b"NVIDIA H200",
        "nvmlDeviceGetUUID": lambda handle: f"GPU-{handle}",
        "nvmlSystemGetDriverVersion": lambda: "580.95",
        "nvmlSystemGetCudaDriverVersion_v2": lambda: 13000,
        "nvmlDeviceGetClockInfo": lambda _, kind: {1: 1500, 2: 3200}[kind],
        "nvmlDeviceGetMaxClockInfo": lambda *_: 1980,
        "nvmlDeviceGetTemperature": lambda *_: 41,
        "nvmlDeviceGetPowerUsage": lambda _: 120_500,
        "nvmlDeviceGetEnforcedPowerLimit": lambda _: 700_000,
        "nvmlDeviceGetCurrentClocksEventReasons": lambda _: 0x1 | 0x4 | 0x40,
        "nvmlDeviceGetMigMode": lambda _: [0, 1],
        "nvmlDeviceGetPersistenceMode": lambda _: 1,
        "nvmlDeviceGetMemoryInfo": lambda _: SimpleNamespace(used=5, total=10),
        "nvmlDeviceGetComputeRunningProcesses": lambda _: [SimpleNamespace(pid=os.getpid())],
        "nvmlDeviceGetMPSComputeRunningProcesses": lambda _: [],
    }


@pytest.fixture(autouse=True)
def no_mps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_MPS_PIPE_DIRECTORY", raising=False)


def nvml(**changes: Any) -> Nvml:
    return Nvml(SimpleNamespace(**(whole() | changes)))


def test_everything_that_nvml_tells_is_read() -> None:
    assert read_gpu("GPU-1", nvml()) == GpuState(
        name="NVIDIA H200",
        uuid="GPU-1",
        driver="580.95",
        cuda_version="13.0",
        sm_clock_mhz=1500,
        max_sm_clock_mhz=1980,
        memory_clock_mhz=3200,
        temperature_c=41,
        power_w=120.5,
        power_limit_w=700.0,
        throttle_reasons=("power cap", "hardware thermal slowdown"),
        is_mig=False,
        is_mps=False,
        is_persistent=True,
        processes=(os.getpid(),),
        memory_used_bytes=5,
        memory_total_bytes=10,
    )


@pytest.mark.parametrize("missing", [name for name in whole() if name.startswith("nvmlDeviceGet")])
@pytest.mark.parametrize("how", ["absent", "refuses"])
def test_each_fact_may_be_missing(missing: str, how: str) -> None:
    parts = whole()
    if how == "absent":
        del parts[missing]
    else:
        parts[missing] = refuse
    read_gpu("GPU-1", Nvml(SimpleNamespace(**parts)))
    read_gpu("", Nvml(SimpleNamespace(**parts)))


def test_without_nvml_nothing_is_known_and_nothing_fails() -> None:
    state = read_gpu("GPU-1", Nvml())
    assert state == GpuState()
    assert not state.is_known
    assert read_gpus(Nvml()) == ()
    assert state.foreign([os.getpid()]) is None
    assert lock_clocks_command(state) == ""


@pytest.mark.parametrize("name", ["GPU-1", "0000:3B:00.0"])
def test_a_gpu_is_found_by_id_and_by_address(name: str) -> None:
    assert read_gpu(name, nvml()).uuid == "GPU-1"


def test_the_older_name_of_the_throttle_reasons_does() -> None:
    parts = whole()
    del parts["nvmlDeviceGetCurrentClocksEventReasons"]
    parts["nvmlDeviceGetCurrentClocksThrottleReasons"] = lambda _: 0x8
    assert read_gpu("", Nvml(SimpleNamespace(**parts))).throttle_reasons == ("hardware slowdown",)


def test_the_multi_process_service_is_seen_by_its_clients() -> None:
    clients = nvml(
        nvmlDeviceGetMPSComputeRunningProcesses=lambda _: [SimpleNamespace(pid=NO_SUCH_PID)]
    )
    state = read_gpu("", clients)
    assert state.is_mps is True
    assert state.processes == (os.getpid(), NO_SUCH_PID)


@pytest.fixture
def child() -> Any:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process.pid
    process.communicate()


def test_our_own_processes_are_not_foreign(child: int) -> None:
    state = GpuState(processes=(os.getpid(), child))
    assert state.foreign([os.getpid()]) == ()
    assert state.foreign([child]) == (os.getpid(),)


def test_numbers_of_another_namespace_are_not_taken_for_foreigners() -> None:
    assert GpuState(processes=(NO_SUCH_PID,)).foreign([os.getpid()]) is None
    assert GpuState(processes=(NO_SUCH_PID, os.getpid())).foreign([os.getpid()]) == (NO_SUCH_PID,)


def test_the_command_that_locks_clocks_names_the_gpu_and_the_way_back() -> None:
    command = lock_clocks_command(GpuState(uuid="GPU-1", max_sm_clock_mhz=1980))
    assert command == (
        "sudo nvidia-smi -i GPU-1 -lgc 1485,1485   # undo: sudo nvidia-smi -i GPU-1 -rgc"
    )


def test_a_meter_sums_up_what_it_saw() -> None:
    first = GpuState(
        sm_clock_mhz=1000, temperature_c=50, power_w=100.0, throttle_reasons=(), processes=()
    )
    second = replace(
        first,
        sm_clock_mhz=2000,
        temperature_c=40,
        throttle_reasons=("power cap",),
        processes=(os.getppid(),),
    )
    states = iter([first, second])
    meter = GpuMeter("GPU-1", [os.getpid()], look=lambda _: next(states, second))
    reading = meter.read()
    assert reading.sm_clock_mhz is not None
    assert reading.sm_clock_mhz >= 1500
    assert reading.temperature_c == 50
    assert reading.throttle_reasons == ("power cap",)
    assert reading.foreign_pids == (os.getppid(),)
    assert reading.memory_clock_mhz is None
    assert reading.notes() == (
        f"The GPU's clocks were held down: power cap (mean {reading.sm_clock_mhz:.0f} MHz).",
        f"Other processes computed on the GPU: {os.getppid()}.",
    )


def test_a_meter_without_nvml_reads_nothing() -> None:
    with GpuMeter(look=lambda _: GpuState()) as meter:
        assert meter.read() == GpuReading()
    assert GpuReading().notes() == ()


def test_a_quiet_gpu_is_not_worth_a_note() -> None:
    assert GpuReading(throttle_reasons=("application clocks",), foreign_pids=()).notes() == ()
