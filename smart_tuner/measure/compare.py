"""Baseline and candidate measured side by side, in interleaved blocks."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Protocol

import numpy as np

from smart_tuner.measure.blocks import plan_block, time_samples, warm_up
from smart_tuner.measure.latency import Comparison, Statistic
from smart_tuner.measure.statistics import (
    figure_of,
    median_half_width,
    pooled_log_ratio,
    summarize,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from smart_tuner.measure.blocks import BlockPlan, WarmUp
    from smart_tuner.measure.latency import LatencySummary
    from smart_tuner.measure.stop_rule import StopRule

    Samples = npt.NDArray[np.float64]

LEAST_DRIFT = 0.01
"""A baseline that moved by less than this share is not called drifting: ABBA order cancels it."""

LEAST_TAIL_MS = 0.2
"""Below this latency no tails are claimed: the clock's own spikes would be measured."""

_SEED = 0


class TimedArm(Protocol):
    """One of the two things that are compared; every ``EngineRunner`` is one."""

    def time_block(self, iterations: int) -> Sequence[float]:
        """Run ``iterations`` times and return milliseconds.

        Raises:
            RunError: The engine did not run.
        """
        ...


def compare(
    baseline: TimedArm,
    candidate: TimedArm,
    point: str,
    rule: StopRule,
    *,
    clock: Callable[[], float] = time.perf_counter,
) -> Comparison:
    """Measure two arms until the rule is satisfied.

    Both arms are warmed up until stable. Then blocks of equal duration follow in the order
    A B B A A B B A ..., each pair of neighbours giving one ratio, so that slow drift hits both
    arms alike and linear drift cancels. Deterministic apart from what the arms report.

    Args:
        baseline: The engine of the base with no route.
        candidate: The engine to rank.
        point: Name of the workload point, kept in the result.
        rule: How much is enough.
        clock: Wall-clock seconds.

    Raises:
        RunError: An arm did not run, or reported a latency that is zero, negative or not finite.
    """
    started = clock()
    arms = (baseline, candidate)
    warm = warm_up([arm.time_block for arm in arms], rule, clock)
    plans = [plan_block(iteration_ms, rule) for iteration_ms in warm.iteration_ms]
    blocks, is_grouped = _measure(arms, plans, rule, clock)
    summaries = [summarize(np.concatenate(samples)) for samples in blocks]
    log_ratio, half_width = _estimate(blocks, rule.statistic)
    notes = [*_warm_up_notes(warm), *_drift_notes(blocks[0])]
    unclaimed = _why_unclaimed(summaries, rule.statistic, is_grouped=is_grouped)
    if unclaimed:
        half_width = math.inf
        notes.append(unclaimed)
    return Comparison(
        point=point,
        log_ratios=tuple(_log_ratios(blocks, rule.statistic)),
        log_ratio=log_ratio,
        half_width=half_width,
        baseline=summaries[0],
        candidate=summaries[1],
        seconds=clock() - started,
        notes=tuple(notes),
    )


def _measure(
    arms: Sequence[TimedArm],
    plans: Sequence[BlockPlan],
    rule: StopRule,
    clock: Callable[[], float],
) -> tuple[list[list[Samples]], bool]:
    """Kept samples of each block, by arm, and whether a sample stands for several runs."""
    blocks: list[list[Samples]] = [[], []]
    log_ratios: list[float] = []
    is_grouped = False
    started = clock()
    while not rule.is_satisfied(log_ratios, clock() - started):
        order = (0, 1) if len(log_ratios) % 2 == 0 else (1, 0)
        for place in order:
            plan = plans[place]
            samples = time_samples(arms[place].time_block, plan.kept + plan.dropped)
            is_grouped |= samples.size < plan.kept + plan.dropped
            # An arm that times several inferences as one reports fewer samples than asked.
            blocks[place].append(samples[min(plan.dropped, samples.size - 1) :])
        log_ratios.append(_log_ratio(blocks[0][-1], blocks[1][-1], rule.statistic))
    return blocks, is_grouped


def _log_ratio(baseline: Samples, candidate: Samples, statistic: Statistic) -> float:
    return math.log(figure_of(candidate, statistic)) - math.log(figure_of(baseline, statistic))


def _log_ratios(blocks: Sequence[Sequence[Samples]], statistic: Statistic) -> list[float]:
    pairs = zip(blocks[0], blocks[1], strict=True)
    return [_log_ratio(baseline, candidate, statistic) for baseline, candidate in pairs]


def _estimate(blocks: Sequence[Sequence[Samples]], statistic: Statistic) -> tuple[float, float]:
    if statistic is not Statistic.MEDIAN:
        return pooled_log_ratio(blocks[0], blocks[1], statistic, _SEED)
    log_ratios = _log_ratios(blocks, statistic)
    return float(np.median(log_ratios)), median_half_width(log_ratios)


def _warm_up_notes(warm: WarmUp) -> list[str]:
    if warm.is_stable:
        return []
    return [f"The latency was still changing after a warm-up of {warm.seconds:.1f} s."]


def _drift_notes(blocks: Sequence[Samples]) -> list[str]:
    """Say when the baseline's first and last blocks differ by more than their spread."""
    medians = [float(np.median(block)) for block in (blocks[0], blocks[-1])]
    spread = max(
        float(np.subtract(*np.quantile(block, (0.75, 0.25)))) for block in (blocks[0], blocks[-1])
    )
    moved = abs(medians[1] - medians[0])
    if moved <= max(spread, LEAST_DRIFT * min(medians)):
        return []
    return [f"Drift: the baseline went from {medians[0]:.4g} ms to {medians[1]:.4g} ms."]


def _why_unclaimed(
    summaries: Sequence[LatencySummary], statistic: Statistic, *, is_grouped: bool
) -> str:
    """Why a tail is measured but not claimed; empty when it is claimed."""
    if not statistic.is_tail:
        return ""
    if is_grouped:
        return f"No {statistic.value} is claimed: runs are timed in groups, which hides tails."
    fastest = min(summary.median_ms for summary in summaries)
    if fastest < LEAST_TAIL_MS:
        return (
            f"No {statistic.value} is claimed at {fastest:.3g} ms: tails need {LEAST_TAIL_MS} ms."
        )
    fewest = min(summary.count for summary in summaries)
    if fewest < statistic.least_samples:
        return (
            f"No {statistic.value} is claimed from {fewest} samples: it needs "
            f"{statistic.least_samples}; allow more seconds or pairs."
        )
    return ""
