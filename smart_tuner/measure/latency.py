"""Latency figures: what a trial keeps of its samples, and the ratio that ranks it."""

from __future__ import annotations

import math
from dataclasses import dataclass


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


@dataclass(frozen=True, slots=True)
class Comparison:
    """Candidate against baseline at one workload point, measured in interleaved blocks.

    Attributes:
        point: Name of the workload point.
        log_ratios: ln(candidate / baseline) of each pair of blocks, ratio of block medians.
        log_ratio: The estimate: median of ``log_ratios``.
        half_width: Half of the 95 % interval on ``log_ratio``; infinite below three pairs.
        baseline: Samples of the baseline arm.
        candidate: Samples of the candidate arm.
        seconds: Wall-clock seconds spent.
        notes: What disturbed the measurement (foreign load, drift ...).
    """

    point: str
    log_ratios: tuple[float, ...]
    log_ratio: float
    half_width: float
    baseline: LatencySummary
    candidate: LatencySummary
    seconds: float
    notes: tuple[str, ...] = ()

    @property
    def gain(self) -> float:
        """Baseline over candidate latency; 1.00 is no change, more is faster."""
        return math.exp(-self.log_ratio)
