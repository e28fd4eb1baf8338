"""What the machine was like while trials were measured: clocks, temperature, the baseline."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from smart_tuner.report.reading import StudyView

FIGURES = {
    "sm_clock_mhz": "clock of the multiprocessors, MHz",
    "memory_clock_mhz": "clock of the memory, MHz",
    "temperature_c": "temperature, °C",
    "power_w": "power, W",
}
"""Figures of a device that change over time, in words with their unit."""


DISTURBANCES = {
    "Drift:": "the baseline drifted",
    "Other processes kept": "other processes kept processors busy",
    "Other processes computed": "other processes computed on the GPU",
    "The GPU's clocks": "the GPU's clocks were held down",
    "The GPU is shared": "the GPU was shared through the multi-process service",
    "The latency was still": "the latency was still changing after the warm-up",
}
"""How notes of a measurement begin, and what they say without their figures."""


@dataclass(frozen=True, slots=True)
class Series:
    """One figure over the trials.

    Attributes:
        name: Key, with the unit.
        label: In words, with the unit.
        trials: Trial numbers, ascending.
        values: The figure at each of them.
    """

    name: str
    label: str
    trials: tuple[int, ...]
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class MachineState:
    """The machine over the trials.

    Attributes:
        series: Clocks, temperature and power, those that the device told.
        baseline: Median latency of the baseline beside each trial, in milliseconds.
        disturbances: What disturbed measurements, by how many of them, most frequent first.
        measured: Trials that were measured.
        notes: What the study noted while it ran, the noise of its baseline among it.
    """

    series: tuple[Series, ...]
    baseline: Series | None
    disturbances: tuple[tuple[str, int], ...]
    measured: int
    notes: tuple[str, ...] = ()


def machine_of(view: StudyView) -> MachineState:
    """Collect what trials recorded of the machine."""
    seen = view.conditions
    numbers = tuple(sorted(seen))
    series = []
    for name, label in FIGURES.items():
        known = [number for number in numbers if name in seen[number].device]
        if known:
            values = tuple(seen[number].device[name] for number in known)
            series.append(Series(name, label, tuple(known), values))
    baseline = None
    if numbers:
        figures = tuple(seen[number].baseline_ms for number in numbers)
        baseline = Series("baseline_ms", "median of the baseline, ms", numbers, figures)
    return MachineState(
        tuple(series),
        baseline,
        _disturbances(view, numbers),
        measured=len(numbers),
        notes=view.result.notes if view.result else (),
    )


def _disturbances(view: StudyView, numbers: tuple[int, ...]) -> tuple[tuple[str, int], ...]:
    """Notes by kind, in words: figures in them differ from trial to trial."""
    counts = Counter(
        kind for number in numbers for kind in {_kind(n) for n in view.conditions[number].notes}
    )
    return tuple(counts.most_common())


def _kind(note: str) -> str:
    for beginning, words in DISTURBANCES.items():
        if note.startswith(beginning):
            return words
    return "something else disturbed the measurement"
