"""Blocks of iterations: checked samples, warm-up until stable, how long a block must be."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from smart_tuner.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from smart_tuner.measure.stop_rule import StopRule

    Samples = npt.NDArray[np.float64]
    TimeBlock = Callable[[int], Sequence[float]]

MOST_ITERATIONS = 1_000_000
"""Iterations of one block at most: a wrong first figure must not order days of work."""

STABLE_SHARE = 0.03
"""Medians of successive warm-up blocks that differ by no more than this share agree."""

CAP_FACTOR = 20
"""The warm-up ends after this many times its shortest duration, stable or not."""


@dataclass(frozen=True, slots=True)
class BlockPlan:
    """Iterations of each block of one arm.

    Attributes:
        kept: Iterations that count, >= 1.
        dropped: Iterations before them that are left out.
    """

    kept: int
    dropped: int


@dataclass(frozen=True, slots=True)
class WarmUp:
    """What the warm-up found.

    Attributes:
        iteration_ms: Typical milliseconds of an iteration, one figure an arm.
        is_stable: Whether no arm was still changing when it ended.
        seconds: Wall-clock seconds that it took.
    """

    iteration_ms: tuple[float, ...]
    is_stable: bool
    seconds: float


def time_samples(time_block: TimeBlock, iterations: int) -> Samples:
    """Run a block and check what it reports.

    Returns:
        Milliseconds, at least one, each finite and above 0.

    Raises:
        RunError: A figure is zero, negative or not finite, or there is none.
    """
    samples = np.asarray(time_block(iterations), dtype=np.float64).reshape(-1)
    if samples.size == 0:
        msg = f"The engine reported no latency for a block of {iterations} iterations."
        raise RunError(msg)
    wrong = np.flatnonzero(~(np.isfinite(samples) & (samples > 0)))
    if wrong.size:
        first = int(wrong[0])
        msg = (
            f"The engine reported a latency of {float(samples[first])!r} ms in iteration "
            f"{first + 1} of {samples.size}: a latency is finite and above 0."
        )
        raise RunError(msg)
    return samples


def plan_block(iteration_ms: float, rule: StopRule) -> BlockPlan:
    """Choose the iterations of a block so that blocks of both arms last equally long.

    A block lasts ``block_seconds`` and keeps ``min_iterations``, unless ``min_pairs`` such blocks
    would not fit into ``max_seconds``. Tails also get enough samples to be claimed.

    Args:
        iteration_ms: Typical milliseconds of an iteration.
        rule: The rule to plan for.
    """
    seconds = iteration_ms / 1000
    wanted = max(
        rule.min_iterations,
        rule.block_seconds / seconds,
        rule.statistic.least_samples / rule.min_pairs,
    )
    # A cold start costs far less than an iteration that fills a block by itself.
    dropped = rule.dropped if seconds < rule.block_seconds else 0
    affordable = rule.max_seconds / (2 * rule.min_pairs) / seconds - dropped
    kept = math.ceil(min(wanted, MOST_ITERATIONS))
    return BlockPlan(kept if kept <= affordable else max(1, int(affordable)), dropped)


def warm_up(arms: Sequence[TimeBlock], rule: StopRule, clock: Callable[[], float]) -> WarmUp:
    """Run all arms in turn until their latency no longer changes.

    By time, not by count: the first call may be 40 times slower, and clocks that fell during a
    build take a while to rise.

    Raises:
        RunError: An arm reported an impossible latency.
    """
    started = clock()
    medians: list[list[float]] = [[] for _ in arms]
    iterations = [1] * len(arms)
    least = rule.warm_up_seconds * len(arms)
    while True:
        for place, arm in enumerate(arms):
            samples = time_samples(arm, iterations[place])
            # The switch between the arms is not what is waited for.
            median = float(np.median(samples[min(rule.dropped, samples.size - 1) :]))
            medians[place].append(median)
            iterations[place] = _next_iterations(iterations[place], median, rule)
        elapsed = clock() - started
        is_stable = all(_is_settled(history) for history in medians)
        if elapsed >= least * CAP_FACTOR or (
            elapsed >= least and is_stable and len(medians[0]) > 1
        ):
            return WarmUp(tuple(history[-1] for history in medians), is_stable, elapsed)


def _next_iterations(iterations: int, median_ms: float, rule: StopRule) -> int:
    """Aim at four blocks in the shortest warm-up, growing step by step."""
    seconds = min(rule.block_seconds, rule.warm_up_seconds / 4)
    wanted = math.ceil(min(seconds * 1000 / median_ms, MOST_ITERATIONS))
    return min(max(wanted, 1 + rule.dropped), max(iterations * 16, 1 + rule.dropped))


def _is_settled(medians: Sequence[float]) -> bool:
    """Whether the last blocks agree, or differ without a trend.

    A machine that is only noisy would be waited for in vain; what has to end is the way from
    cold to warm. A single block has nothing to differ from.
    """
    recent = medians[-3:]
    steps = [later - earlier for earlier, later in pairwise(recent)]
    has_trend = all(step > 0 for step in steps) or all(step < 0 for step in steps)
    return not has_trend or max(recent) - min(recent) <= STABLE_SHARE * max(recent)
