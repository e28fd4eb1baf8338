"""A GPU: its state now, and what it did while something was measured on it."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from smart_tuner.devices.gpu_state import GpuState, lock_clocks_command, read_gpu, read_gpus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from typing_extensions import Self

__all__ = [
    "GpuMeter",
    "GpuReading",
    "GpuState",
    "lock_clocks_command",
    "read_gpu",
    "read_gpus",
]

INTERVAL_SECONDS = 0.2
"""Between two looks; each takes about a millisecond of one processor."""

HARMLESS_REASONS = frozenset({"application clocks", "sync boost", "display clocks"})
"""Reasons that hold for both arms alike and all the time."""


@dataclass(frozen=True, slots=True)
class GpuReading:
    """What a GPU did over a while; None is what the driver does not tell.

    Attributes:
        seconds: How long, roughly: looks times interval.
        sm_clock_mhz: Mean clock of the processors.
        memory_clock_mhz: Mean clock of the memory.
        temperature_c: Highest temperature.
        power_w: Mean power.
        throttle_reasons: Everything that held clocks down at some moment.
        foreign_pids: Processes of others that computed on it at some moment.
        is_mig: Whether it is cut into slices.
        is_mps: Whether it is shared through the multi-process service.
    """

    seconds: float = 0.0
    sm_clock_mhz: float | None = None
    memory_clock_mhz: float | None = None
    temperature_c: float | None = None
    power_w: float | None = None
    throttle_reasons: tuple[str, ...] | None = None
    foreign_pids: tuple[int, ...] | None = None
    is_mig: bool | None = None
    is_mps: bool | None = None

    def notes(self) -> tuple[str, ...]:
        """What disturbed the measurement, a sentence each; empty on a quiet GPU."""
        notes = []
        reasons = [name for name in self.throttle_reasons or () if name not in HARMLESS_REASONS]
        if reasons:
            at = "" if self.sm_clock_mhz is None else f" (mean {self.sm_clock_mhz:.0f} MHz)"
            notes.append(f"The GPU's clocks were held down: {', '.join(reasons)}{at}.")
        if self.foreign_pids:
            pids = ", ".join(map(str, self.foreign_pids))
            notes.append(f"Other processes computed on the GPU: {pids}.")
        if self.is_mps:
            notes.append("The GPU is shared through the multi-process service.")
        return tuple(notes)


class GpuMeter:
    """Looks at a GPU at regular intervals until it is read.

    A thread of its own does the looking; it sleeps nearly always. Belongs into the process that
    waits, not into the one that is measured.
    """

    def __init__(
        self,
        uuid: str = "",
        own_pids: Iterable[int] = (),
        *,
        look: Callable[[str], GpuState] = read_gpu,
    ) -> None:
        """Start to watch.

        Args:
            uuid: Id of the GPU; the first one by default.
            own_pids: Processes that are not foreign; neither are their descendants.
            look: Asks for the state of a GPU.
        """
        self._uuid = uuid
        self._own = tuple(own_pids)
        self._look = look
        self._states: list[GpuState] = []
        self._foreign: set[int] = set()
        self._is_foreign_known = False
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="gpu-meter", daemon=True)
        self._see()
        if self._states[0].is_known:
            self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop()

    def read(self) -> GpuReading:
        """Look once more, stop, and return what was seen."""
        self._stop()
        if self._states[0].is_known:
            self._see()
        return self._reading()

    def _watch(self) -> None:
        while not self._ended.wait(INTERVAL_SECONDS):
            self._see()

    def _see(self) -> None:
        state = self._look(self._uuid)
        foreign = state.foreign(self._own)
        self._states.append(state)
        self._is_foreign_known |= foreign is not None
        self._foreign.update(foreign or ())

    def _stop(self) -> None:
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def _reading(self) -> GpuReading:
        states = self._states
        temperatures = [s.temperature_c for s in states if s.temperature_c is not None]
        reasons = [s.throttle_reasons for s in states if s.throttle_reasons is not None]
        return GpuReading(
            seconds=(len(states) - 1) * INTERVAL_SECONDS,
            sm_clock_mhz=_mean([s.sm_clock_mhz for s in states]),
            memory_clock_mhz=_mean([s.memory_clock_mhz for s in states]),
            temperature_c=max(temperatures, default=None),
            power_w=_mean([s.power_w for s in states]),
            throttle_reasons=tuple(sorted({name for group in reasons for name in group}))
            if reasons
            else None,
            foreign_pids=tuple(sorted(self._foreign)) if self._is_foreign_known else None,
            is_mig=states[-1].is_mig,
            is_mps=states[-1].is_mps,
        )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
