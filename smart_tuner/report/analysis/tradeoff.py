"""Latency against accuracy, and what another epsilon would have changed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from smart_tuner.storages.tell import WORST_VIOLATION
from smart_tuner.trial.trial import TrialOutcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from smart_tuner.report.reading import StudyView

LARGEST_RATIO = 10**WORST_VIOLATION
"""Losses are kept within this factor of epsilon to either side; beyond, they are not told apart."""


EXACT = "exact"
"""What a loss is called that is no more than a millionth of epsilon."""


@dataclass(frozen=True, slots=True)
class TradeoffPoint:
    """One measured trial.

    Attributes:
        number: Trial number.
        gain: Baseline over candidate latency.
        ratio: Worst loss over its epsilon, within ``LARGEST_RATIO``; feasible means at most 1.
        feasible: Whether it may ship: within epsilon and every further limit.
        on_front: Nothing else that was tried is both faster and more exact.
        route: Canonical text of the route.
    """

    number: int
    gain: float
    ratio: float
    feasible: bool
    on_front: bool
    route: str

    @property
    def is_exact(self) -> bool:
        """Whether the loss is too small to be told from none."""
        return self.ratio <= 1 / LARGEST_RATIO


@dataclass(frozen=True, slots=True)
class Tradeoff:
    """Measured trials by gain and loss.

    Attributes:
        points: The trials, by number.
        metric: Name of the accuracy metric.
        epsilon: The epsilon of outputs that have none of their own.
        one_epsilon: All outputs share that epsilon, so that ratio times epsilon is a loss.
        untimed: Trials over epsilon or a limit that were not measured, so that they are no points.
    """

    points: tuple[TradeoffPoint, ...]
    metric: str
    epsilon: float
    one_epsilon: bool
    untimed: int = 0

    @property
    def front(self) -> tuple[TradeoffPoint, ...]:
        """The Pareto set, the most exact first."""
        return tuple(sorted((p for p in self.points if p.on_front), key=lambda p: p.ratio))


@dataclass(frozen=True, slots=True)
class SweepStep:
    """From this epsilon on, up to the next step's, the same routes are eligible.

    Attributes:
        ratio: Epsilon as a multiple of the study's own.
        eligible: Tried routes within it, the default among them.
        number: Trial number of the fastest of them.
        gain: Its gain.
        route: Its route; empty for the default.
    """

    ratio: float
    eligible: int
    number: int
    gain: float
    route: str


def tradeoff_of(view: StudyView) -> Tradeoff:
    """Gain and loss of every trial that has both."""
    seen = []
    for record in view.records:
        gain = view.gain(record)
        if gain is None or record.violation is None:
            continue
        limit = record.over_limits or ()
        feasible = record.outcome is TrialOutcome.FEASIBLE and not limit
        seen.append((record.number, gain, 10**record.violation, feasible, str(record.route)))
    front = _front([(number, gain, ratio) for number, gain, ratio, _, _ in seen])
    points = tuple(
        TradeoffPoint(number, gain, ratio, feasible, number in front, route)
        for number, gain, ratio, feasible, route in seen
    )
    per_output = view.document["accuracy"].get("per_output") or {}
    finite = 0 < view.epsilon < math.inf
    over = [r for r in view.records if r.outcome is TrialOutcome.INFEASIBLE]
    untimed = sum(view.gain(record) is None for record in over)
    one = finite and not per_output
    return Tradeoff(points, view.metric, view.epsilon, one_epsilon=one, untimed=untimed)


def _front(points: Sequence[tuple[int, float, float]]) -> frozenset[int]:
    """Numbers of the trials that nothing beats in both gain and loss."""
    best, kept = 0.0, set()
    for number, gain, _ in sorted(points, key=lambda point: (point[2], -point[1], point[0])):
        if gain > best:
            best = gain
            kept.add(number)
    return frozenset(kept)


def sweep_of(tradeoff: Tradeoff) -> tuple[SweepStep, ...]:
    """What would have been eligible at each epsilon, and which route would have been fastest.

    Only routes that were tried are counted, and a search under another epsilon would have tried
    others. Routes that break a limit beside accuracy count at no epsilon, nor do those without a
    finite loss.
    """
    usable = [
        point
        for point in sorted(tradeoff.points, key=lambda point: (point.ratio, point.number))
        if point.ratio < LARGEST_RATIO and (point.feasible or point.ratio > 1)
    ]
    steps: list[SweepStep] = []
    best: TradeoffPoint | None = None
    for count, point in enumerate(usable, 1):
        if best is None or point.gain > best.gain:
            best = point
        step = SweepStep(point.ratio, count, best.number, best.gain, best.route)
        if steps and math.isclose(steps[-1].ratio, point.ratio, rel_tol=1e-9):
            steps[-1] = step
        else:
            steps.append(step)
    return tuple(steps)


def winners_of(steps: Sequence[SweepStep]) -> tuple[SweepStep, ...]:
    """The steps at which another route becomes the fastest."""
    return tuple(
        step
        for place, step in enumerate(steps)
        if not place or steps[place - 1].number != step.number
    )
