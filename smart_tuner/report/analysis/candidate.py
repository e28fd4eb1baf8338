"""The best candidate of a study without a gain, and how many routes it was chosen from."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from smart_tuner.report.analysis.confirmation import confirmation_of
from smart_tuner.storages.history import best_feasible
from smart_tuner.study.gain import Gain
from smart_tuner.trial.trial import TrialOutcome

if TYPE_CHECKING:
    from smart_tuner.report.reading import StudyView


@dataclass(frozen=True, slots=True)
class Candidates:
    """Routes beside the default.

    Attributes:
        best: Gain of the best of them: over fresh builds if there are any, else as the search
            saw it; ``None`` if none has a latency.
        compared: How many of them ran within epsilon and every limit.
        tried: How many there are.
    """

    best: Gain | None
    compared: int
    tried: int

    def __str__(self) -> str:
        """What they showed, one phrase."""
        best = (
            "no candidate has a latency" if self.best is None else f"best candidate {_gain(self)}"
        )
        if not self.tried:
            return "no route beside the default was tried"
        if self.compared == self.tried:
            return f"{best}, all {self.tried} routes could be compared"
        return (
            f"{best}, {self.compared} of {self.tried} routes could be compared, the others failed "
            "or were too inaccurate"
        )


def candidates_of(view: StudyView) -> Candidates:
    """Count the routes beside the default and find the best of them."""
    routes = [record for record in view.records if len(record.route)]
    compared = sum(record.outcome is TrialOutcome.FEASIBLE for record in routes)
    return Candidates(_best(view), compared, len(routes))


def _best(view: StudyView) -> Gain | None:
    if view.result is not None and view.result.route_gain is not None:
        return view.result.route_gain
    fresh = [build for build in confirmation_of(view).builds if build.gain is not None]
    if fresh:
        build = max(fresh, key=lambda build: build.gain or 0.0)
        low, high = build.bounds or (0.0, math.inf)
        return Gain(build.gain or 1.0, low, high, len(build.blocks))
    record = best_feasible(record for record in view.records if len(record.route))
    gain = view.gain(record) if record else None
    if record is None or gain is None:
        return None
    width = math.inf if record.half_width is None else record.half_width
    return Gain.from_log_ratio(-math.log(gain), width, 1)


def _gain(candidates: Candidates) -> str:
    best = candidates.best
    if best is None:
        return ""
    interval = "" if math.isinf(best.high) else f" (interval {best.low:.4f} to {best.high:.4f})"
    return f"{best.value:.4f}x{interval}"
