"""Finalists against the baseline: fresh builds, block by block."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING

from smart_tuner.measure.statistics import median_interval
from smart_tuner.study.proof.result import Verdict

if TYPE_CHECKING:
    from smart_tuner.report.reading import StudyView
    from smart_tuner.study.files.runs import FreshRun

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
        gain: Their median, under sustained load the verdict's own figure; ``None`` if it was not
            measured.
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

    @property
    def bounds(self) -> tuple[float, float] | None:
        """95 % interval of the gain; ``None`` where there are too few blocks for one."""
        low, high = median_interval(self.blocks)
        return (low, high) if math.isfinite(high) else None


@dataclass(frozen=True, slots=True)
class Confirmation:
    """All fresh builds, in order.

    Attributes:
        builds: The builds.
        min_gain: The smallest gain that ships.
        why_none: Why there are no builds, one sentence.
    """

    builds: tuple[FreshGain, ...]
    min_gain: float
    why_none: str = ""


def confirmation_of(view: StudyView) -> Confirmation:
    """What fresh builds showed."""
    counts: dict[str, int] = {}
    builds = []
    for run in view.runs:
        counts[run.phase] = counts.get(run.phase, 0) + 1
        builds.append(_fresh(run, f"{run.phase} {counts[run.phase]}"))
    sustained = view.result.sustained_gain if view.result else None
    if sustained is not None:
        # One figure for one thing: the verdict weighs the points, which runs do not keep.
        builds = [
            replace(build, gain=sustained.value)
            if build.phase == "sustained" and build.gain is not None
            else build
            for build in builds
        ]
    return Confirmation(tuple(builds), view.min_gain, "" if builds else _why_none(view))


def _why_none(view: StudyView) -> str:
    """A reader asks how sure it is: the answer is never left open between two."""
    result = view.result
    if result is None:
        return "No route was built afresh yet: the study has not come to it."
    if result.route_gain is not None:
        return "The figures of single fresh builds are not kept in this folder."
    if result.verdict is Verdict.UNDECIDED:
        return "No route was built afresh: there was no budget for it."
    return (
        "No route was built afresh: none was measured faster than the default and near enough to "
        f"the {view.min_gain:g}x that ships."
    )


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
