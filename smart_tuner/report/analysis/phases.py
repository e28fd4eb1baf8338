"""Where the time went."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from smart_tuner.report.reading import StudyView

TRIAL_PHASES = {
    "build": "building (trials)",
    "validate": "checking outputs (trials)",
    "measure": "measuring (trials)",
    "wait": "waiting for another study (trials)",
}
"""What a trial keeps the seconds of, in words."""

TRIAL_REST = "starting processes and the rest (trials)"
FINALISTS = "fresh builds (finalists)"
LEAST_SECONDS = 0.5
"""Phases below that are not worth a line."""

OTHER = "baseline, proposing routes and the rest"


@dataclass(frozen=True, slots=True)
class PhaseTime:
    """Time of one phase.

    Attributes:
        name: The phase, in words.
        seconds: Wall-clock seconds.
        share: Share of all time spent.
    """

    name: str
    seconds: float
    share: float


@dataclass(frozen=True, slots=True)
class PhaseTimes:
    """Where the time went.

    Attributes:
        phases: The phases that took time, in the order of a study.
        spent_seconds: All time spent.
        budget_seconds: The budget.
        trial_seconds: Seconds of a typical trial, the mean; 0 without trials.
    """

    phases: tuple[PhaseTime, ...]
    spent_seconds: float
    budget_seconds: float
    trial_seconds: float


def phases_of(view: StudyView) -> PhaseTimes:
    """Add the seconds up."""
    seconds = dict.fromkeys(TRIAL_PHASES.values(), 0.0)
    total = 0.0
    for record in view.records:
        total += record.seconds.get("total", 0.0)
        for key, name in TRIAL_PHASES.items():
            seconds[name] += record.seconds.get(key, 0.0)
    seconds[TRIAL_REST] = max(0.0, total - sum(seconds.values()))
    seconds[FINALISTS] = sum(run.seconds for run in view.runs)
    spent = max(view.spent_seconds, total + seconds[FINALISTS])
    seconds[OTHER] = max(0.0, spent - total - seconds[FINALISTS])
    ordered = (OTHER, *TRIAL_PHASES.values(), TRIAL_REST, FINALISTS)
    tried = sum(record.seconds.get("total", 0.0) > 0 for record in view.records)
    return PhaseTimes(
        phases=tuple(
            PhaseTime(name, seconds[name], seconds[name] / spent)
            for name in ordered
            if spent and seconds[name] >= LEAST_SECONDS
        ),
        spent_seconds=spent,
        budget_seconds=view.budget_seconds,
        trial_seconds=total / tried if tried else 0.0,
    )
