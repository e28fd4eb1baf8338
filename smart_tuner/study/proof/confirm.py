"""From finished trials to what ships, with gains that stand behind it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING

from smart_tuner.measure.statistics import combine
from smart_tuner.measure.stop_rule import StopRule
from smart_tuner.study.progress.events import PhaseStarted
from smart_tuner.study.proof.finalists import (
    LEAST_REPORT_ROUNDS,
    REPORT_ROUNDS,
    best_rebuilt,
    report_rounds,
    shortlist,
    without_idle_knobs,
)
from smart_tuner.study.proof.gain import Gain
from smart_tuner.study.proof.statistics import gain_over_builds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_tuner.route.build_route import BuildRoute
    from smart_tuner.storages.history import TrialRecord
    from smart_tuner.study.proof.fresh import Fresh, FreshBuilder

SUSTAINED_BLOCK_SECONDS = 10.0
SUSTAINED_PAIRS = 4


@dataclass(frozen=True, slots=True)
class Confirmed:
    """A route that was rebuilt and measured on samples that did not choose it.

    Attributes:
        shipped: The first of the fresh measurements behind the gain; its engine ships if the
            route does.
        route_gain: Over fresh builds of both arms.
        engine_gain: Of this engine file over the fastest baseline build.
        sustained_gain: In long blocks, if there was time.
        indicative: Fewer than five builds a side.
        worst_point: Gain at the workload point that gained least.
        failures: Fresh builds that failed or broke epsilon, the one for long blocks included.
        disturbed: Fresh measurements during which other processes were busy, or the baseline
            drifted.
    """

    shipped: Fresh
    route_gain: Gain
    engine_gain: Gain
    sustained_gain: Gain | None
    indicative: bool
    worst_point: tuple[str, float]
    failures: int = 0
    disturbed: int = 0

    @property
    def route(self) -> BuildRoute:
        """The route, cut down to the knobs that pay."""
        return self.shipped.route

    @property
    def deciding_gain(self) -> Gain:
        """The route gain, unless long blocks contradict it; then theirs.

        They contradict it when their whole interval lies below it: a noisy neighbour in a few
        long blocks is no evidence against five fresh builds.
        """
        sustained = self.sustained_gain
        if sustained and sustained.high < self.route_gain.low:
            return sustained
        return self.route_gain

    def regresses(self, max_regression: float) -> bool:
        """Whether one workload point pays too much for the others."""
        return self.worst_point[1] < 1 / (1 + max_regression)

    def ships(self, min_gain: float, max_regression: float) -> bool:
        """Whether the gain is proven, no build failed, and no point pays for it.

        An engine that is the baseline's own has gained nothing, however sure its 1.00x is.
        """
        is_proven = self.deciding_gain.low >= min_gain and not self.shipped.trial.unchanged
        return is_proven and not self.failures and not self.regresses(max_regression)


def short_of_confirming(
    records: tuple[TrialRecord, ...], builder: FreshBuilder, baseline_ms: float, min_gain: float
) -> float:
    """Seconds that the budget lacks for rebuilding one promising route and reporting on it.

    Args:
        records: Finished trials.
        builder: Builds and measures; knows what a round takes where builds are slow.
        baseline_ms: The study's frozen baseline latency.
        min_gain: The smallest gain that ships.

    Returns:
        0 if there is enough, or nothing to confirm.
    """
    if not shortlist(records, baseline_ms, min_gain):
        return 0.0
    return builder.short_of(1 + LEAST_REPORT_ROUNDS)


def confirm(
    records: tuple[TrialRecord, ...], builder: FreshBuilder, baseline_ms: float, min_gain: float
) -> Confirmed | None:
    """Rebuild the best routes, reset what does not pay, and report on fresh builds.

    Args:
        records: Finished trials.
        builder: Builds and measures.
        baseline_ms: The study's frozen baseline latency.
        min_gain: The smallest gain that ships.

    Returns:
        ``None`` if no route can reach the smallest gain, or none works any more.
    """
    routes = shortlist(records, baseline_ms, min_gain)
    if not routes:
        return None
    _begin("finalists", f"Rebuilding the {len(routes)} best routes", builder)
    best = best_rebuilt(routes, builder)
    if best is None or math.exp(-best.log_ratio + best.half_width) < min_gain:
        return None
    _begin("reset", "Resetting knobs that do not pay", builder)
    best = without_idle_knobs(best, builder)
    _begin("report", "Measuring fresh builds of winner and default", builder)
    measured = report_rounds(best.route, builder)
    rounds = tuple(fresh for fresh in measured if fresh)
    if not rounds:
        return None
    lasts = _affords_sustained(builder)
    if lasts:
        _begin("sustained", "Measuring in blocks of ten seconds, where heat shows", builder)
    sustained = _measure_sustained(best.route, builder) if lasts else None
    return Confirmed(
        shipped=rounds[0],
        route_gain=gain_over_builds([fresh.log_ratio for fresh in rounds]),
        engine_gain=_engine_gain(rounds, builder.weights),
        sustained_gain=_sustained_gain(sustained, builder.weights) if sustained else None,
        indicative=len(rounds) < REPORT_ROUNDS,
        worst_point=_worst_point(rounds),
        failures=measured.count(None) + (lasts and sustained is None),
        disturbed=sum(_was_disturbed(fresh) for fresh in rounds),
    )


def _begin(phase: str, text: str, builder: FreshBuilder) -> None:
    builder.listener(PhaseStarted(phase, text, builder.budget.spent))


def _was_disturbed(fresh: Fresh) -> bool:
    return any(comparison.notes for comparison in fresh.trial.comparisons)


def _engine_gain(rounds: tuple[Fresh, ...], weights: Mapping[str, float]) -> Gain:
    """The shipped file against the fastest baseline build that it met.

    Builds whose file is the same byte for byte count as the shipped one; the smallest of the
    gains is the one over the fastest baseline.
    """
    shipped = rounds[0].engine.sha256
    same = [
        fresh for fresh in rounds if fresh.engine.sha256 == shipped and not fresh.trial.unchanged
    ]
    if not same:
        return Gain(1.0, 1.0, 1.0, len(rounds))
    least = max(same, key=lambda fresh: fresh.log_ratio)
    log_ratio, half_width = combine(least.trial.comparisons, weights)
    pairs = len(least.trial.comparisons[0].log_ratios)
    return Gain.from_log_ratio(log_ratio, half_width, pairs)


def _affords_sustained(builder: FreshBuilder) -> bool:
    points = len(builder.weights)
    needed = points * SUSTAINED_PAIRS * 2 * SUSTAINED_BLOCK_SECONDS + builder.round_seconds
    return builder.budget.left >= needed


def _measure_sustained(route: BuildRoute, builder: FreshBuilder) -> Fresh | None:
    """Compare in blocks of ten seconds, where power and heat limits show."""
    rule = StopRule.fixed(
        SUSTAINED_PAIRS,
        block_seconds=SUSTAINED_BLOCK_SECONDS,
        statistic=builder.rule.statistic,
    )
    return replace(builder, rule=rule).measure(route, "sustained")


def _sustained_gain(fresh: Fresh, weights: Mapping[str, float]) -> Gain:
    """Gain over pairs of long blocks, the points weighted."""
    if fresh.trial.unchanged:
        return Gain(1.0, 1.0, 1.0, SUSTAINED_PAIRS)
    comparisons = fresh.trial.comparisons
    shares = [weights[comparison.point] for comparison in comparisons]
    pairs = zip(*(comparison.log_ratios for comparison in comparisons), strict=True)
    return gain_over_builds(
        [
            sum(share * ratio for share, ratio in zip(shares, pair, strict=True)) / sum(shares)
            for pair in pairs
        ]
    )


def _worst_point(rounds: tuple[Fresh, ...]) -> tuple[str, float]:
    """The workload point that gained least, by the mean over rounds."""
    ratios: dict[str, list[float]] = {}
    for fresh in rounds:
        for comparison in fresh.trial.comparisons:
            ratios.setdefault(comparison.point, []).append(comparison.log_ratio)
    means = {point: fmean(values) for point, values in ratios.items()}
    point = max(means, key=means.__getitem__, default="")
    return point, math.exp(-means.get(point, 0.0))
