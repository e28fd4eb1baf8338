"""What a GPU is doing, as NVML tells it: every fact may be missing, and nothing fails for it."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import psutil

from smart_tuner.devices.nvml import find_nvml

if TYPE_CHECKING:
    from collections.abc import Iterable

    from smart_tuner.devices.nvml import Handle, Nvml

_CLOCK_SM, _CLOCK_MEMORY = "NVML_CLOCK_SM", "NVML_CLOCK_MEM"

THROTTLE_REASONS = {
    0x2: "application clocks",
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "thermal limit",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
    0x100: "display clocks",
}
"""Why clocks are held down; NVML's bit to words. Idle (0x1) is no reason to mind."""


@dataclass(frozen=True, slots=True)
class GpuState:
    """A GPU at one moment; None is what the driver does not tell.

    Attributes:
        name: Its name.
        uuid: Its id.
        driver: Version of the driver.
        cuda_version: Newest CUDA version that the driver supports, e.g. ``12.9``.
        sm_clock_mhz: Clock of the processors.
        max_sm_clock_mhz: Its limit.
        memory_clock_mhz: Clock of the memory.
        temperature_c: Degrees Celsius of the chip.
        power_w: Watts.
        power_limit_w: Watts at which clocks are held down.
        throttle_reasons: Why clocks are held down now; empty if they are not.
        is_mig: Whether it is cut into slices.
        is_mps: Whether processes share it through the multi-process service.
        is_persistent: Whether the driver stays loaded between processes.
        processes: Ids of the processes that compute on it.
        memory_used_bytes: Memory in use, by all.
        memory_total_bytes: Memory.
    """

    name: str | None = None
    uuid: str | None = None
    driver: str | None = None
    cuda_version: str | None = None
    sm_clock_mhz: int | None = None
    max_sm_clock_mhz: int | None = None
    memory_clock_mhz: int | None = None
    temperature_c: int | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    throttle_reasons: tuple[str, ...] | None = None
    is_mig: bool | None = None
    is_mps: bool | None = None
    is_persistent: bool | None = None
    processes: tuple[int, ...] | None = None
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None

    @property
    def is_known(self) -> bool:
        """Whether anything is known at all."""
        return any(getattr(self, field.name) is not None for field in fields(self))

    def foreign(self, own_pids: Iterable[int]) -> tuple[int, ...] | None:
        """Processes that compute on the GPU and are neither in ``own_pids`` nor descend from them.

        In a container NVML may name processes by numbers of the host, which mean nothing here: a
        number that no process here has counts as foreign only if one of ours is recognised.

        Returns:
            Their ids, or None if that cannot be told.
        """
        if self.processes is None:
            return None
        family = _family(own_pids)
        others = [pid for pid in self.processes if pid not in family]
        visible = tuple(pid for pid in others if psutil.pid_exists(pid))
        if len(others) < len(self.processes) or len(visible) == len(others):
            return tuple(others)
        return visible or None


def read_gpu(uuid: str = "", nvml: Nvml | None = None) -> GpuState:
    """Ask for the state of a GPU.

    Args:
        uuid: Its id or PCI address; the first GPU by default.
        nvml: Who is asked; the installed NVML by default.
    """
    nvml = find_nvml() if nvml is None else nvml
    handle = nvml.handle(uuid)
    return GpuState() if handle is None else _read(nvml, handle)


def read_gpus(nvml: Nvml | None = None) -> tuple[GpuState, ...]:
    """Ask for the states of all GPUs; none without NVML."""
    nvml = find_nvml() if nvml is None else nvml
    return tuple(_read(nvml, handle) for handle in nvml.handles())


def lock_clocks_command(state: GpuState) -> str:
    """The command with which an administrator may hold the clocks still; never run by us.

    Three quarters of the highest clock are held under a power limit that the highest is not.

    Returns:
        The command and the one that undoes it, or nothing where clocks are not known.
    """
    if state.max_sm_clock_mhz is None or state.uuid is None:
        return ""
    clock = state.max_sm_clock_mhz * 3 // 4 // 15 * 15
    return (
        f"sudo nvidia-smi -i {state.uuid} -lgc {clock},{clock}"
        f"   # undo: sudo nvidia-smi -i {state.uuid} -rgc"
    )


def _read(nvml: Nvml, handle: Handle) -> GpuState:
    memory = nvml.get("nvmlDeviceGetMemoryInfo", handle)
    power = nvml.number("nvmlDeviceGetPowerUsage", handle)
    limit = nvml.number("nvmlDeviceGetEnforcedPowerLimit", handle)
    mps = nvml.pids("nvmlDeviceGetMPSComputeRunningProcesses", handle)
    return GpuState(
        name=nvml.text("nvmlDeviceGetName", handle),
        uuid=nvml.text("nvmlDeviceGetUUID", handle),
        driver=nvml.text("nvmlSystemGetDriverVersion"),
        cuda_version=_version(nvml.number("nvmlSystemGetCudaDriverVersion_v2")),
        sm_clock_mhz=nvml.number("nvmlDeviceGetClockInfo", handle, constant=_CLOCK_SM),
        max_sm_clock_mhz=nvml.number("nvmlDeviceGetMaxClockInfo", handle, constant=_CLOCK_SM),
        memory_clock_mhz=nvml.number("nvmlDeviceGetClockInfo", handle, constant=_CLOCK_MEMORY),
        temperature_c=nvml.number(
            "nvmlDeviceGetTemperature", handle, constant="NVML_TEMPERATURE_GPU"
        ),
        power_w=None if power is None else power / 1000,
        power_limit_w=None if limit is None else limit / 1000,
        throttle_reasons=_reasons(nvml, handle),
        is_mig=_first_flag(nvml.get("nvmlDeviceGetMigMode", handle)),
        is_mps=_is_mps(mps),
        is_persistent=_first_flag(nvml.get("nvmlDeviceGetPersistenceMode", handle)),
        processes=_joined(nvml.pids("nvmlDeviceGetComputeRunningProcesses", handle), mps),
        memory_used_bytes=None if memory is None else int(memory.used),
        memory_total_bytes=None if memory is None else int(memory.total),
    )


def _reasons(nvml: Nvml, handle: Handle) -> tuple[str, ...] | None:
    bits = nvml.number("nvmlDeviceGetCurrentClocksEventReasons", handle)
    if bits is None:
        # The name before driver 535.
        bits = nvml.number("nvmlDeviceGetCurrentClocksThrottleReasons", handle)
    if bits is None:
        return None
    return tuple(words for bit, words in THROTTLE_REASONS.items() if bits & bit)


def _is_mps(pids: tuple[int, ...] | None) -> bool | None:
    """Whether the service is in use: here by its pipe, elsewhere by its clients."""
    if os.environ.get("CUDA_MPS_PIPE_DIRECTORY"):
        return True
    return None if pids is None else bool(pids)


def _joined(*groups: tuple[int, ...] | None) -> tuple[int, ...] | None:
    known = [group for group in groups if group is not None]
    return tuple(sorted({pid for group in known for pid in group})) if known else None


def _first_flag(value: object) -> bool | None:
    """NVML's 0 or 1, alone or as the first of current and pending."""
    if isinstance(value, list | tuple):
        value = value[0] if value else None
    return None if value is None else bool(value)


def _version(number: int | None) -> str | None:
    return None if number is None else f"{number // 1000}.{number % 1000 // 10}"


def _family(roots: Iterable[int]) -> frozenset[int]:
    family = set(roots)
    for pid in tuple(family):
        family.update(_descendants(pid))
    return frozenset(family)


def _descendants(pid: int) -> list[int]:
    try:
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    except psutil.Error:
        return []
