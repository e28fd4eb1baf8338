"""A comparison with an eye on who else uses the device meanwhile."""

from __future__ import annotations

import math
import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from smart_tuner.devices.cpu import LoadMeter
from smart_tuner.devices.gpu import GpuMeter, read_gpu
from smart_tuner.measure.compare import compare

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from smart_tuner.devices.gpu import GpuReading, GpuState
    from smart_tuner.engine.platform import Platform
    from smart_tuner.measure.compare import TimedArm
    from smart_tuner.measure.latency import Comparison
    from smart_tuner.measure.stop_rule import StopRule

    Look = Callable[[str], GpuState]

UUID = "uuid"
"""Detail of a platform that names the very GPU, where there is one."""

PATIENCE_SECONDS = 60.0
"""How long a measurement waits for others to leave the GPU; then it goes on, and says so."""

_LOOK_SECONDS = 0.5
_NOTABLE_LOAD = 0.25


def lock_key(platform: Platform) -> str:
    """Return the name of the device that measurements on it are serialised by."""
    return platform.details.get(UUID) or platform.device


def compare_watched(
    arms: tuple[TimedArm, TimedArm],
    point: str,
    rule: StopRule,
    platform: Platform,
    *,
    look: Look = read_gpu,
) -> Comparison:
    """Compare baseline and candidate, and note what disturbed them.

    Args:
        arms: Baseline and candidate.
        point: Name of the workload point.
        rule: How much is enough.
        platform: Where both run.
        look: Asks for the state of the GPU that the platform names.

    Raises:
        RunError: An arm did not run, or reported no latency.
    """
    uuid, own = platform.details.get(UUID, ""), [os.getpid()]
    if uuid:
        wait_until_free(uuid, own, look)
    load = LoadMeter(own)
    if not uuid:
        return _with_notes(compare(*arms, point, rule), _load_notes(load))
    with GpuMeter(uuid, own, look=look) as meter:
        comparison = compare(*arms, point, rule)
        reading = meter.read()
    notes = (*_load_notes(load), *gpu_notes(reading))
    return replace(_with_notes(comparison, notes), device=figures_of(reading))


def wait_until_free(
    uuid: str, own_pids: Iterable[int], look: Look, patience_seconds: float = PATIENCE_SECONDS
) -> None:
    """Wait while processes of others compute on a GPU, but not for ever.

    Only those count that come and go: who holds memory on the GPU all the time, as a desktop or a
    server at rest does, would be waited for in vain, so waiting ends with patience.

    Args:
        uuid: The GPU.
        own_pids: Processes that are not foreign; neither are their descendants.
        look: Asks for the state of the GPU.
        patience_seconds: How long to wait.
    """
    own, deadline = tuple(own_pids), time.perf_counter() + patience_seconds
    while look(uuid).foreign(own):
        left = deadline - time.perf_counter()
        if left <= 0:
            return
        time.sleep(min(_LOOK_SECONDS, left))


def gpu_notes(reading: GpuReading) -> tuple[str, ...]:
    """What disturbed a measurement on a GPU, a sentence each."""
    notes = reading.notes()
    return (*notes, "The GPU is cut into slices (MIG).") if reading.is_mig else notes


def figures_of(reading: GpuReading) -> Mapping[str, float]:
    """Clocks, temperature and power of a GPU, as far as it tells them."""
    figures = {
        "sm_clock_mhz": reading.sm_clock_mhz,
        "memory_clock_mhz": reading.memory_clock_mhz,
        "temperature_c": reading.temperature_c,
        "power_w": reading.power_w,
    }
    return {
        name: round(float(value), 3)
        for name, value in figures.items()
        if value is not None and math.isfinite(value)
    }


def _load_notes(meter: LoadMeter) -> tuple[str, ...]:
    load = meter.read()
    if load < _NOTABLE_LOAD:
        return ()
    return (f"Other processes kept {load:.1f} processors busy meanwhile.",)


def _with_notes(comparison: Comparison, notes: tuple[str, ...]) -> Comparison:
    return replace(comparison, notes=(*comparison.notes, *notes))
