"""A comparison with an eye on who else uses the device meanwhile."""

from __future__ import annotations

import math
import os
import time
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from smart_tuner.devices.cpu import LoadMeter
from smart_tuner.devices.gpu import GpuMeter, read_gpu
from smart_tuner.devices.lock import device_lock
from smart_tuner.devices.shares import crew_pids, processors_in_use
from smart_tuner.measure.compare import compare

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from smart_tuner.devices.gpu import GpuReading, GpuState
    from smart_tuner.engine.platform import Platform
    from smart_tuner.measure.compare import TimedArm
    from smart_tuner.measure.latency import Comparison
    from smart_tuner.measure.stop_rule import StopRule

    Look = Callable[[str], GpuState]

UUID = "uuid"
"""Detail of a platform that names the very GPU, where there is one."""

MIG = "mig"
"""Figure that is there, and 1, if the device is a slice of a GPU."""

PATIENCE_SECONDS = 60.0
"""How long a measurement waits for others to leave the GPU; then it goes on, and says so."""

_LOOK_SECONDS = 0.5
_LOOKS_UNTIL_TOLD = 2
"""A process that is just ending is not worth a word."""

_NOTABLE_LOAD = 0.25


@contextmanager
def measuring_lock(
    platform: Platform, on_wait: Callable[[str], None] | None = None
) -> Iterator[None]:
    """Hold the device alone, over all studies of a user; the very GPU where it has an id.

    Without one, hold each processor that may be used: workers that share a machine out without
    overlap measure beside each other, anybody else waits.

    Args:
        platform: Names the device.
        on_wait: Gets one line when another study holds it.
    """
    uuid = platform.details.get(UUID)
    keys = (uuid,) if uuid else _processors(platform.device)
    told: list[str] = []

    def tell_once(text: str) -> None:
        if on_wait is not None and not told:
            told.append(text)
            on_wait(text)

    with ExitStack() as held:
        for key in keys:
            held.enter_context(device_lock(key, label=platform.device, on_wait=tell_once))
        yield


class Watch:
    """Compares on one device, and looks at it meanwhile."""

    def __init__(
        self,
        platform: Platform,
        *,
        look: Look = read_gpu,
        patience_seconds: float = PATIENCE_SECONDS,
        on_wait: Callable[[str], None] | None = None,
    ) -> None:
        """Watch a device.

        Args:
            platform: Names the device.
            look: Asks for the state of the GPU that the platform names, if it does.
            patience_seconds: How long to wait for others to leave the GPU.
            on_wait: Gets one line when that takes long.
        """
        self._uuid = platform.details.get(UUID, "")
        self._look = look
        self._device = platform.device
        self._patience_seconds = patience_seconds
        self._on_wait = on_wait
        self._own = (os.getpid(), *crew_pids())
        self._residents: frozenset[int] = frozenset()

    def compare(self, arms: tuple[TimedArm, TimedArm], point: str, rule: StopRule) -> Comparison:
        """Compare baseline and candidate, and note what disturbed them.

        Args:
            arms: Baseline and candidate.
            point: Name of the workload point.
            rule: How much is enough.

        Raises:
            RunError: An arm did not run, or reported no latency.
        """
        if self._uuid:
            self.wait_until_free()
        load = LoadMeter(self._own)
        if not self._uuid:
            return _with_notes(compare(*arms, point, rule), _load_notes(load))
        with GpuMeter(self._uuid, self._own, look=self._look) as meter:
            comparison = compare(*arms, point, rule)
            reading = meter.read()
        notes = (*_load_notes(load), *reading.notes())
        return replace(_with_notes(comparison, notes), device=figures_of(reading))

    def wait_until_free(self) -> None:
        """Wait while others compute on the GPU, but not for ever, and say so.

        Who outlasts our patience is not waited for again: a desktop, or a server at rest, holds
        on to a GPU all the time.
        """
        deadline = time.perf_counter() + self._patience_seconds
        looks = 0
        while others := self._others() - self._residents:
            looks += 1
            if looks == _LOOKS_UNTIL_TOLD and self._on_wait is not None:
                pids = ", ".join(map(str, sorted(others)))
                self._on_wait(f"Waiting for {self._device}: others compute on it ({pids}).")
            left = deadline - time.perf_counter()
            if left <= 0:
                self._residents |= others
                return
            time.sleep(min(_LOOK_SECONDS, left))

    def _others(self) -> frozenset[int]:
        return frozenset(self._look(self._uuid).foreign(self._own) or ())


def figures_of(reading: GpuReading) -> Mapping[str, float]:
    """Clocks, temperature and power of a GPU, and whether it is a slice, as far as it tells."""
    figures = {
        "sm_clock_mhz": reading.sm_clock_mhz,
        "memory_clock_mhz": reading.memory_clock_mhz,
        "temperature_c": reading.temperature_c,
        "power_w": reading.power_w,
        MIG: 1.0 if reading.is_mig else None,
    }
    return {
        name: round(float(value), 3)
        for name, value in figures.items()
        if value is not None and math.isfinite(value)
    }


def _processors(device: str) -> tuple[str, ...]:
    """What to lock of a device without an id, always in the same order."""
    numbers = processors_in_use()
    return tuple(f"{device} processor {number}" for number in numbers) or (device,)


def _load_notes(meter: LoadMeter) -> tuple[str, ...]:
    load = meter.read()
    if load < _NOTABLE_LOAD:
        return ()
    names = ", ".join(meter.busiest()) or "none of them visible from here"
    return (f"Other processes kept {load:.1f} processors busy meanwhile ({names}).",)


def _with_notes(comparison: Comparison, notes: tuple[str, ...]) -> Comparison:
    return replace(comparison, notes=(*comparison.notes, *notes))
