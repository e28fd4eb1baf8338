"""Intervals on gains. All are 95 %."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

if TYPE_CHECKING:
    from collections.abc import Sequence

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Gain:
    """Baseline over candidate latency with its 95 % interval; 1.00 is no change.

    Attributes:
        value: The estimate.
        low: Lower bound; 0 when there are too few samples for one.
        high: Upper bound; infinite when there are too few samples for one.
        samples: How many independent samples stand behind it (builds for a route gain, pairs of
            blocks for an engine gain).
    """

    value: float
    low: float
    high: float
    samples: int

    def __str__(self) -> str:
        if math.isinf(self.high):
            return f"{self.value:.3f}x (no interval from {self.samples} sample)"
        return f"{self.value:.3f}x (95 % interval {self.low:.3f}-{self.high:.3f})"

    @classmethod
    def from_log_ratio(cls, log_ratio: float, half_width: float, samples: int) -> Gain:
        """Turn ln(candidate / baseline) with a half width into a gain."""
        if math.isinf(half_width):
            return cls(math.exp(-log_ratio), 0.0, math.inf, samples)
        return cls(
            math.exp(-log_ratio),
            math.exp(-log_ratio - half_width),
            math.exp(-log_ratio + half_width),
            samples,
        )


def gain_over_builds(log_ratios: Sequence[float]) -> Gain:
    """Gain with builds as the sampling unit.

    Student's t interval on the mean of ln(candidate / baseline) over independent builds of both
    arms (Student, Biometrika 6, 1908). A bootstrap over blocks would see only the measurement
    noise and miss that two builds of one route differ.

    Args:
        log_ratios: One figure a pair of fresh builds, at least one.
    """
    values = np.asarray(log_ratios, dtype=float)
    mean = float(values.mean())
    if values.size < 2:
        return Gain.from_log_ratio(mean, math.inf, values.size)
    error = float(values.std(ddof=1)) / math.sqrt(values.size)
    quantile = float(special.stdtrit(values.size - 1, 0.5 + CONFIDENCE / 2))
    return Gain.from_log_ratio(mean, quantile * error, values.size)
