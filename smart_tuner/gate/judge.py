"""Is it slower than before, beyond noise? Three comparisons, each with a 95 % interval.

A slow-down is a regression when its interval lies above 1 *and* its estimate above 1 + tolerance:
beyond doubt, and large enough to matter. What a comparison cannot tell is said, never failed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from smart_tuner.study.proof.statistics import CONFIDENCE

if TYPE_CHECKING:
    from collections.abc import Sequence

ROUNDS = 8
"""Rounds of a comparison: each starts both engines in fresh processes."""

TOLERANCE = 0.03
"""A slow-down up to this share is not called a regression."""

LEAST_RUNS = 4
"""Earlier runs that a latency needs before today's can be judged against them."""

RUN_SPREAD = 0.01
"""Standard deviation between runs of a log ratio, as long as a store has too few to tell."""

LARGE, MISSED = 0.10, 0.05
"""A slow-down that a comparison should tell, and how often it may miss it."""

MOST_RUNS = 30
"""Earlier runs beyond which more of them hardly narrow an interval."""

LEAST = 1e-12


class Compared(str, Enum):
    """What was compared. Values are stored: add, never rename."""

    ARTEFACTS = "artefacts"
    OVER_DEFAULT = "over default"
    LATENCY = "latency"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Slowdown:
    """Latency now over latency before, with its 95 % interval; 1.00 is no change.

    Attributes:
        value: The estimate.
        low: Lower bound.
        high: Upper bound.
        samples: Independent samples behind it: rounds, or earlier runs.
        error: Standard error of ln(value); infinite as long as nobody can know it.
    """

    value: float
    low: float
    high: float
    samples: int
    error: float

    def __str__(self) -> str:
        if math.isinf(self.high):
            return f"{self.value:.3f}x (no interval yet)"
        return f"{self.value:.3f}x (95 % interval {self.low:.3f}-{self.high:.3f})"

    def is_regression(self, tolerance: float) -> bool:
        """Whether it is slower beyond doubt, and by more than the tolerance."""
        return self.low > 1 and self.value > 1 + tolerance

    def is_settled(self, tolerance: float) -> bool:
        """Whether more rounds would hardly change the answer."""
        return self.is_regression(tolerance) or self.high < 1 + tolerance

    def misses_large(self, tolerance: float) -> bool:
        """Whether at this noise a slow-down of ``LARGE`` would be missed too often."""
        if math.isinf(self.error):
            return True
        return _missed(self.error, math.log(self.high / self.value), tolerance) > MISSED

    def runs_that_tell(self, tolerance: float) -> int | None:
        """Earlier runs that would do, differing as those of this prediction do; ``None``: no number."""
        spread = self.error / math.sqrt(1 + 1 / self.samples)
        for runs in range(LEAST_RUNS, MOST_RUNS + 1):
            error = spread * math.sqrt(1 + 1 / runs)
            if _missed(error, _reach(error, runs - 1), tolerance) <= MISSED:
                return runs
        return None


def between_artefacts(log_ratios: Sequence[float]) -> Slowdown:
    """Two engines measured side by side: Student's t interval over rounds.

    Args:
        log_ratios: ln(candidate / before) of each round; rounds are the sampling unit, since a
            fresh process places threads and memory anew.
    """
    values = np.asarray(log_ratios, dtype=float)
    error = float(values.std(ddof=1)) / math.sqrt(values.size) if values.size > 1 else math.inf
    return _slowdown(float(values.mean()), error, values.size - 1, values.size)


def over_default(before: Sequence[Sequence[float]], now: Sequence[float]) -> Slowdown:
    """One engine against its archived default, today and in earlier runs.

    With few earlier runs: Welch's t interval over the rounds of both sides (Welch, Biometrika 34,
    1947), widened by ``RUN_SPREAD``: rounds cannot know how much runs differ. From ``LEAST_RUNS`` on: a prediction interval over the means of runs, which knows how
    much runs of this store differ.

    Args:
        before: ln(candidate / default) of each round, by earlier run; at least one run.
        now: The same of today's rounds.
    """
    today = np.asarray(now, dtype=float)
    if len(before) >= LEAST_RUNS:
        return _predicted([float(np.mean(run)) for run in before], float(today.mean()))
    earlier = np.concatenate([np.asarray(run, dtype=float) for run in before])
    difference = float(today.mean() - earlier.mean())
    if min(today.size, earlier.size) < 2:
        return _slowdown(difference, math.inf, 1, int(today.size))
    shares = [float(arm.var(ddof=1)) / arm.size for arm in (today, earlier)]
    # The spread of runs is taken as known, as by infinitely many.
    total = sum(shares) + RUN_SPREAD**2 * (1 + 1 / len(before))
    freedom = total**2 / max(
        sum(
            share**2 / (arm.size - 1) for share, arm in zip(shares, (today, earlier), strict=True)
        ),
        LEAST,
    )
    return _slowdown(difference, math.sqrt(total), freedom, int(today.size))


def against_runs(before_ms: Sequence[float], now_ms: float) -> Slowdown:
    """Today's latency against those of earlier runs: a prediction interval over runs.

    Args:
        before_ms: Latency of each earlier run; without ``LEAST_RUNS`` there is no interval.
        now_ms: Latency of today's run.
    """
    logs = [math.log(value) for value in before_ms]
    if len(logs) < LEAST_RUNS:
        return _slowdown(math.log(now_ms) - float(np.mean(logs)), math.inf, 1, len(logs))
    return _predicted(logs, math.log(now_ms))


def _predicted(before: Sequence[float], now: float) -> Slowdown:
    """Where one more run lies beside earlier ones, in log space."""
    values = np.asarray(before, dtype=float)
    error = float(values.std(ddof=1)) * math.sqrt(1 + 1 / values.size)
    return _slowdown(now - float(values.mean()), error, values.size - 1, values.size)


def _slowdown(log_ratio: float, error: float, freedom: float, samples: int) -> Slowdown:
    if math.isinf(error):
        return Slowdown(math.exp(log_ratio), 0.0, math.inf, samples, error)
    reach = _reach(error, freedom)
    low, high = math.exp(log_ratio - reach), math.exp(log_ratio + reach)
    return Slowdown(math.exp(log_ratio), low, high, samples, error)


def _reach(error: float, freedom: float) -> float:
    """Half of the interval, in log space."""
    return float(special.stdtrit(freedom, 0.5 + CONFIDENCE / 2)) * error


def _missed(error: float, reach: float, tolerance: float) -> float:
    """Chance that the estimate of a slow-down of ``LARGE`` is too small to be a regression."""
    needed = max(reach, math.log1p(tolerance))
    return float(special.ndtr((needed - math.log1p(LARGE)) / max(error, LEAST)))
