"""What each value of a knob does to latency, with an interval, from all trials at once.

The model: ln(latency / baseline) of a route is the sum of one effect for each value that is not
the default, plus noise. Effects are estimated together by ridge regression, whose penalty and
noise are found by maximizing the evidence (Bayesian linear regression: D. MacKay, "Bayesian
Interpolation", Neural Computation 4, 1992, equations for alpha and beta). Trials weigh by their
own measured intervals: one that was twice as noisy as the median counts 2/5 as much. Intervals
are 95 % of the posterior. Interactions are not in the model: what they add shows as noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from smart_tuner.report.analysis.table import value_table
from smart_tuner.report.words import latency_percent
from smart_tuner.study.proof.finalists import NORMAL_QUANTILE, SPREAD

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from smart_tuner.report.reading import StudyView
    from smart_tuner.storages.history import TrialRecord

    Figures = npt.NDArray[np.float64]

ROUNDS = 60
LEAST_TRIALS = 3
"""Measured trials below which no effect is estimated."""

NEGLIGIBLE = 0.01
"""An effect within one percent does not matter: no route ships for less, unless told to."""

SURE = 3.0
"""A value pays or costs if its effect is so many standard deviations from 0: hundreds of values
are looked at, of which 95 % intervals would let one in twenty in by luck."""

SMALLEST = 0.005
"""Effects below half a percent are not called any, however sure they look."""

LEAST_NOISE = 1e-3
"""Standard deviation of ln(latency ratio) that noise is never taken to be below."""


class Finding(str, Enum):
    """What is known of a value."""

    PAYS = "pays"
    COSTS = "costs"
    NO_EFFECT = "no effect"
    UNCLEAR = "unclear"
    NEVER_MEASURED = "tried, no latency"


@dataclass(frozen=True, slots=True)
class ValueEffect:
    """The effect of one value against its knob's default.

    Attributes:
        knob: The knob.
        value: The value.
        effect: Estimated effect on ln(latency); negative is faster; ``None`` if never measured.
        half_width: Half of its 95 % interval.
        measured: Measured trials with this value.
        finding: What that says.
    """

    knob: str
    value: str
    effect: float | None
    half_width: float | None
    measured: int
    finding: Finding

    @property
    def gain(self) -> float | None:
        """The effect as a gain: 1.05 makes an engine 5 % faster."""
        return None if self.effect is None else math.exp(-self.effect)

    @property
    def shares(self) -> tuple[float, float] | None:
        """The interval of the effect in percent of the latency; below 0 is faster."""
        if self.effect is None or self.half_width is None:
            return None
        low, high = self.effect - self.half_width, self.effect + self.half_width
        return latency_percent(low), latency_percent(high)

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The interval of the gain."""
        if self.effect is None or self.half_width is None:
            return None
        return math.exp(-self.effect - self.half_width), math.exp(-self.effect + self.half_width)


@dataclass(frozen=True, slots=True)
class Effects:
    """Effects of all values that were tried.

    Attributes:
        values: The effects, the one that pays most first; those never measured last.
        floor: Noise floor, ln: half of a single trial's typical 95 % interval; ``None`` unknown.
        floor_source: Where the floor comes from.
        residual: Standard deviation of what the model leaves, noise and interactions; ``None``
            without a model.
        measured: Measured trials behind the estimate.
        untried: Values that no trial had.
    """

    values: tuple[ValueEffect, ...]
    floor: float | None
    floor_source: str
    residual: float | None
    measured: int
    untried: int

    def of(self, finding: Finding) -> tuple[ValueEffect, ...]:
        """The values of one finding, in order."""
        return tuple(value for value in self.values if value.finding is finding)


def effects_of(view: StudyView) -> Effects:
    """Estimate the effect of every value that was tried."""
    tried = value_table(view.records)
    measured = [record for record in view.records if record.value_ms and view.baseline_ms]
    fit = _fit(measured, view.baseline_ms or 0.0)
    counts = _counts(measured)
    effects = [_effect(setting, fit.effects, counts.get(setting, 0)) for setting in tried.values]
    effects.sort(key=_order)
    floor, source = noise_floor(view)
    known = sum(len(values) - 1 for values in view.choices.values())
    return Effects(
        values=tuple(effects),
        floor=floor,
        floor_source=source,
        residual=fit.noise,
        measured=len(measured),
        untried=max(0, known - len(tried.values)),
    )


def noise_floor(view: StudyView) -> tuple[float | None, str]:
    """Half of the 95 % interval that nothing but noise gives one trial, and where it is from."""
    widths = [record.half_width for record in view.records if record.half_width is not None]
    typical = median(widths) if widths else None
    own = [max(abs(ratio), width) for ratio, width in view.noise]
    if own and (typical is None or max(own) >= typical):
        return max(own), "the baseline measured against itself"
    if typical is None:
        return None, "no trial was measured"
    return typical, "the typical interval of one trial"


@dataclass(frozen=True, slots=True)
class _Fit:
    """Mean and standard deviation by value, and of the noise."""

    effects: Mapping[tuple[str, str], tuple[float, float]]
    noise: float | None


def _counts(records: Sequence[TrialRecord]) -> dict[tuple[str, str], int]:
    counts: dict[tuple[str, str], int] = {}
    for record in records:
        for setting in record.route.settings:
            counts[setting] = counts.get(setting, 0) + 1
    return counts


def _fit(records: Sequence[TrialRecord], baseline_ms: float) -> _Fit:
    table = value_table(records)
    if len(records) < LEAST_TRIALS or not table.values:
        return _Fit({}, None)
    target = np.array([math.log((record.value_ms or 1.0) / baseline_ms) for record in records])
    scale = np.sqrt(_weights(records))
    least = max(LEAST_NOISE, _usual_width(records) / NORMAL_QUANTILE)
    mean, spread, noise = _ridge(
        table.flags.astype(float) * scale[:, None], target * scale, least**2
    )
    pairs = zip(table.values, zip(mean.tolist(), spread.tolist(), strict=True), strict=True)
    return _Fit(dict(pairs), noise)


def _weights(records: Sequence[TrialRecord]) -> Figures:
    """Weight by trial: 1 at the median interval, less where it was wider.

    Engines that are the baseline's were not measured and are exact; they weigh as the best do.
    """
    usual = _usual_width(records) or 1.0
    own = np.array([record.half_width or 0.0 for record in records])
    return np.asarray(2.0 / (1.0 + (own / usual) ** 2))


def _usual_width(records: Sequence[TrialRecord]) -> float:
    """Half of a typical trial's interval; 0 if none has one."""
    widths = [record.half_width for record in records if record.half_width]
    return median(widths) if widths else 0.0


def _ridge(table: Figures, target: Figures, least: float) -> tuple[Figures, Figures, float]:
    """Posterior mean and standard deviation of each effect, and the noise's.

    Evidence alone would call every effect zero, and be sure of it, where few noisy trials show
    none: effects are never taken to be smaller than those of values that do something.

    Args:
        table: Which trial has which value, weighted; shape (trials, values).
        target: ln(latency ratio), weighted; shape (trials,).
        least: Variance that the noise has at least, as each trial's own interval tells.
    """
    roots, vectors = np.linalg.eigh(table.T @ table)
    roots = np.maximum(roots, 0.0)
    projected = vectors.T @ (table.T @ target)
    count = len(target)
    noise = max(float(np.var(target)), least)
    prior = max(float(np.mean(target**2)), SPREAD**2)
    energy = float(target @ target)
    for _ in range(ROUNDS):
        shrunk = projected / (roots + noise / prior)
        known = float((roots / (roots + noise / prior)).sum())
        rest = energy - 2 * float(shrunk @ projected) + float(roots @ shrunk**2)
        prior = max(float(shrunk @ shrunk) / max(known, 1e-9), SPREAD**2)
        noise = max(rest / max(count - known, 1.0), least)
    shrunk = projected / (roots + noise / prior)
    variance = (vectors**2) @ (noise / (roots + noise / prior))
    return vectors @ shrunk, np.sqrt(variance), math.sqrt(noise)


def _effect(
    setting: tuple[str, str], fit: Mapping[tuple[str, str], tuple[float, float]], measured: int
) -> ValueEffect:
    if setting not in fit:
        finding = Finding.UNCLEAR if measured else Finding.NEVER_MEASURED
        return ValueEffect(*setting, None, None, measured, finding)
    mean, spread = fit[setting]
    width = NORMAL_QUANTILE * spread
    return ValueEffect(*setting, mean, width, measured, _finding(mean, width))


def _finding(mean: float, width: float) -> Finding:
    """What an estimate says; no effect where the interval holds nothing that would matter."""
    if abs(mean) >= max(SMALLEST, SURE * width / NORMAL_QUANTILE):
        return Finding.PAYS if mean < 0 else Finding.COSTS
    if abs(mean) + width <= NEGLIGIBLE:
        return Finding.NO_EFFECT
    return Finding.UNCLEAR


def _order(effect: ValueEffect) -> tuple[bool, float, str]:
    return (effect.effect is None, effect.effect or 0.0, effect.knob)
