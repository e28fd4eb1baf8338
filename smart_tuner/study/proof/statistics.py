"""Intervals on gains. All are 95 %."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from smart_tuner.study.proof.gain import Gain

if TYPE_CHECKING:
    from collections.abc import Sequence

CONFIDENCE = 0.95


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
