"""Latency figures: what a trial keeps of its samples, and the ratio that ranks it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


class Statistic(str, Enum):
    """The figure of an arm that is compared. Values are stored: add, never rename."""

    MEDIAN = "median"
    MEAN = "mean"
    P90 = "p90"
    P95 = "p95"
    P99 = "p99"

    @property
    def quantile(self) -> float | None:
        """The share of samples at or below the figure; ``None`` for the mean."""
        shares = {"median": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}
        return shares.get(self.value)

    @property
    def is_tail(self) -> bool:
        """Whether the figure is decided by the few slowest iterations."""
        return self in (Statistic.P90, Statistic.P95, Statistic.P99)

    @property
    def least_samples(self) -> int:
        """Samples of an arm below which the figure is not claimed: twenty beyond a quantile."""
        return {"p90": 200, "p95": 400, "p99": 2000}.get(self.value, 1)


@dataclass(frozen=True, slots=True)
class LatencySummary:
    """Quantiles of one arm's samples, in milliseconds."""

    count: int
    mean_ms: float
    p05_ms: float
    p25_ms: float
    median_ms: float
    p75_ms: float
    p90_ms: float
    p95_ms: float
    p99_ms: float

    def figure(self, statistic: Statistic) -> float:
        """The figure of a statistic, in milliseconds."""
        figures = {
            Statistic.MEDIAN: self.median_ms,
            Statistic.MEAN: self.mean_ms,
            Statistic.P90: self.p90_ms,
            Statistic.P95: self.p95_ms,
            Statistic.P99: self.p99_ms,
        }
        return figures[statistic]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Candidate against baseline at one workload point, measured in interleaved blocks.

    Attributes:
        point: Name of the workload point.
        log_ratios: ln(candidate / baseline) of each pair of blocks, ratio of the blocks' figures.
        log_ratio: The estimate: median of ``log_ratios``; for the mean and for tails the log
            ratio of the figures of all samples pooled.
        half_width: Half of the 95 % interval on ``log_ratio``; infinite below three pairs, and
            where there are too few samples to claim a tail.
        baseline: Samples of the baseline arm.
        candidate: Samples of the candidate arm.
        seconds: Wall-clock seconds spent, the warm-up included.
        notes: What disturbed the measurement (foreign load, drift ...).
        device: Figures of the device meanwhile, by name with unit; empty if it tells none.
    """

    point: str
    log_ratios: tuple[float, ...]
    log_ratio: float
    half_width: float
    baseline: LatencySummary
    candidate: LatencySummary
    seconds: float
    notes: tuple[str, ...] = ()
    device: Mapping[str, float] = field(default_factory=dict)

    @property
    def gain(self) -> float:
        """Baseline over candidate latency; 1.00 is no change, more is faster."""
        return math.exp(-self.log_ratio)
