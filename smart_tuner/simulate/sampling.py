"""Drawing measurements of a simulated engine."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from smart_tuner.simulate.effects import Noise

_LARGEST_LOG = 50.0


def factor(log: float) -> float:
    """Return e^log, held within e^-50 and e^50: beyond, no figure would mean anything."""
    return math.exp(max(-_LARGEST_LOG, min(_LARGEST_LOG, log)))


def build_factor(noise: Noise, identity: str) -> float:
    """Return what the luck of one build multiplies the latency by; one identity, one factor."""
    return factor(random.Random(identity).gauss(0.0, noise.build))


def drift_log(noise: Noise, elapsed_seconds: float) -> float:
    """Return the logarithm of the slow drift at one moment; 0 at the start."""
    return noise.drift * math.sin(math.tau * elapsed_seconds / noise.drift_period_seconds)


def draw_samples(
    noise: Noise, engine_ms: float, count: int, rng: np.random.Generator, elapsed_seconds: float
) -> npt.NDArray[np.float64]:
    """Measure an engine.

    Args:
        noise: The measurement noise.
        engine_ms: True latency of this very engine, its build's luck included.
        count: How many samples.
        rng: Source of the noise.
        elapsed_seconds: When the first sample starts, for the drift.

    Returns:
        ``count`` latencies in milliseconds, float64.
    """
    samples = engine_ms * np.exp(noise.measurement * rng.standard_normal(count))
    spikes = rng.exponential(noise.spike_size, count)
    samples *= 1 + spikes * (rng.random(count) < noise.spike_rate)
    if noise.drift:
        seconds = elapsed_seconds + np.cumsum(samples) / 1e3
        samples *= np.exp(noise.drift * np.sin(math.tau * seconds / noise.drift_period_seconds))
    return samples
