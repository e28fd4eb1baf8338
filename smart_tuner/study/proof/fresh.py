"""Fresh builds of both arms, measured with a sample size fixed beforehand."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from smart_tuner.measure.goal import Goal
from smart_tuner.measure.statistics import combine
from smart_tuner.study.progress.events import RouteMeasured
from smart_tuner.study.proof.gain import Gain
from smart_tuner.trial.trial import TrialOutcome

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from smart_tuner.engine.build import Engine
    from smart_tuner.measure.stop_rule import StopRule
    from smart_tuner.route.build_route import BuildRoute
    from smart_tuner.study.progress.budget import Budget
    from smart_tuner.study.progress.events import Listener
    from smart_tuner.trial.trial import Trial

BLOCK_SECONDS = 0.04
ITERATIONS = 4
PAIRS = (4, 16)
"""Fewest and most pairs of blocks in a fresh measurement; even, so that drift cancels."""

ROUNDS = 16
"""About how many fresh measurements the finalists' share of the budget should hold."""


@dataclass(frozen=True, slots=True)
class Fresh:
    """One fresh build of a route against one fresh build of the baseline.

    Attributes:
        route: The route.
        log_ratio: Weighted mean of ln(candidate / baseline) over the points; 0 if the engine is
            the baseline's.
        half_width: Half of its 95 % interval, of measurement noise alone.
        trial: Everything else.
    """

    route: BuildRoute
    log_ratio: float
    half_width: float
    trial: Trial

    @property
    def engine(self) -> Engine:
        """The engine that was measured."""
        if self.trial.engine is None:
            msg = "a feasible trial has an engine"
            raise AssertionError(msg)
        return self.trial.engine


class Evaluates(Protocol):
    """What tries routes: :class:`smart_tuner.trial.evaluate.Evaluator`, or one that pretends."""

    def evaluate(
        self, route: BuildRoute, folder: Path, rule: StopRule, *, fresh_baseline: bool = False
    ) -> Trial:
        """Build and measure a route; see ``Evaluator.evaluate``."""
        ...


@dataclass(slots=True)
class FreshBuilder:
    """Builds and measures routes anew, each time in a folder of its own.

    Attributes:
        evaluator: Tries routes.
        folder: Where builds lie.
        weights: Weight by workload point.
        budget: The study's budget.
        rule: The sample size.
        listener: Hears each measurement.
        expected_seconds: What a round takes at least, as long as none was seen.
        seconds: What each round took.
        gains: Gain of each build that could be measured, of measurement noise alone.
    """

    evaluator: Evaluates
    folder: Path
    weights: Mapping[str, float]
    budget: Budget
    rule: StopRule
    listener: Listener
    expected_seconds: float = 0.0
    seconds: list[float] = field(default_factory=list)
    gains: list[Gain] = field(default_factory=list)

    @property
    def best(self) -> Gain | None:
        """The largest gain of a single build; ``None`` without one."""
        return max(self.gains, key=lambda gain: gain.value, default=None)

    @property
    def round_seconds(self) -> float:
        """What the next round may take: the longest of the last five."""
        return max(self.seconds[-5:], default=self.expected_seconds)

    def short_of(self, rounds: int) -> float:
        """Seconds that so many rounds take beyond what is left of the budget; 0 if they fit."""
        return max(0.0, rounds * self.round_seconds - self.budget.left)

    def affords(self, rounds: int) -> bool:
        """Whether so many rounds fit into what is left of the budget."""
        return self.budget.left > rounds * self.round_seconds

    def measure(self, route: BuildRoute, phase: str) -> Fresh | None:
        """Build both arms anew and compare them.

        Returns:
            ``None`` if the route did not build or run this time, or broke epsilon or a limit.
        """
        started = time.monotonic()
        place = self.folder / f"{phase}-{len(self.seconds)}"
        place.mkdir(parents=True, exist_ok=True)
        trial = self.evaluator.evaluate(route, place, self.rule, fresh_baseline=True)
        self.seconds.append(time.monotonic() - started)
        fresh = self._judge(trial)
        if fresh is not None:
            self.gains.append(Gain.from_log_ratio(fresh.log_ratio, fresh.half_width, 1))
        self.listener(
            RouteMeasured(
                phase=phase,
                route=route,
                gain=math.exp(-fresh.log_ratio) if fresh else None,
                half_width=fresh.half_width if fresh else None,
                message="no effect" if trial.unchanged else trial.message,
            )
        )
        return fresh

    def _judge(self, trial: Trial) -> Fresh | None:
        if trial.outcome is not TrialOutcome.FEASIBLE:
            return None
        if trial.unchanged:
            return Fresh(trial.route, 0.0, 0.0, trial)
        return Fresh(trial.route, *combine(trial.comparisons, self.weights), trial)


def fixed_rule(baseline_ms: float, seconds: float, goal: Goal | None = None) -> StopRule:
    """The sample size of fresh measurements: as many pairs as the budget's share allows.

    Args:
        baseline_ms: Latency of the baseline in milliseconds.
        seconds: The finalists' share of the budget.
        goal: What is measured.
    """
    goal = goal or Goal()
    block = max(goal.fixed(1).block_seconds, BLOCK_SECONDS, ITERATIONS * baseline_ms / 1000)
    least, most = PAIRS
    pairs = int(seconds / ROUNDS / (2 * block))
    return goal.fixed(max(least, min(most, pairs - pairs % 2)), block_seconds=BLOCK_SECONDS)
