"""A gain with its interval."""

from __future__ import annotations

import math
from dataclasses import dataclass

WILD = 10.0
"""Upper over lower bound beyond which figures would make a show of knowing something: two builds
can give an interval from 0.003 to 1611."""


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
        return f"{self.value:.3f}x (95 % interval {self.interval.replace(' to ', '-')})"

    @property
    def interval(self) -> str:
        """Its interval in words: ``1.055 to 1.079``, ``wider than tenfold``, or ``none``."""
        if math.isinf(self.high):
            return "none"
        is_wild = self.high > WILD * self.low
        return "wider than tenfold" if is_wild else f"{self.low:.3f} to {self.high:.3f}"

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
