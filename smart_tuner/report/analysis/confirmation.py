"""Finalists against the baseline: fresh builds, block by block."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from smart_tuner.report.reading import StudyView
    from smart_tuner.study.runs import FreshRun

PHASES = {
    "finalist": "finalists rebuilt",
    "reset": "knobs reset",
    "report": "fresh builds behind the verdict",
    "sustained": "sustained load, blocks of ten seconds",
    "bare default": "against the bare default",
}
"""Phases of confirming, in their order, in words."""


@dataclass(frozen=True, slots=True)
class FreshGain:
    """One fresh build against a fresh baseline.

    Attributes:
        label: Short name, e.g. ``report 2``.
        phase: Key of ``PHASES``.
        route: Canonical text of the route.
        blocks: Gain of each pair of blocks, all points together.
        gain: Their median; ``None`` if it was not measured.
        outcome: ``feasible`` or how it failed; ``no effect`` if the engine is the baseline's.
        message: Why it ended so.
    """

    label: str
    phase: str
    route: str
    blocks: tuple[float, ...]
    gain: float | None
    outcome: str
    message: str


@dataclass(frozen=True, slots=True)
class Confirmation:
    """All fresh builds, in order.

    Attributes:
        builds: The builds.
        min_gain: The smallest gain that ships.
    """

    builds: tuple[FreshGain, ...]
    min_gain: float


def confirmation_of(view: StudyView) -> Confirmation:
    """What fresh builds showed."""
    counts: dict[str, int] = {}
    builds = []
    for run in view.runs:
        counts[run.phase] = counts.get(run.phase, 0) + 1
        builds.append(_fresh(run, f"{run.phase} {counts[run.phase]}"))
    return Confirmation(tuple(builds), view.min_gain)


def _fresh(run: FreshRun, label: str) -> FreshGain:
    blocks = tuple(math.exp(-ratio) for ratios in run.blocks.values() for ratio in ratios)
    return FreshGain(
        label=label,
        phase=run.phase,
        route=run.route,
        blocks=blocks,
        gain=1.0 if run.unchanged else median(blocks) if blocks else None,
        outcome="no effect" if run.unchanged else run.outcome,
        message=run.message,
    )
