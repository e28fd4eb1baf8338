"""What each value did in one study: effects that add up, most of them zero.

Routes change many knobs at once, so a value's effect has to be told apart from its companions'.
Latencies: a spike-and-slab regression (T. J. Mitchell, J. J. Beauchamp, Journal of the American
Statistical Association 83, 1988) by Gibbs sampling (E. I. George, R. E. McCulloch, ibid. 88,
1993), with the share of values that matter, the size of their effects and the noise learnt along.
Failures and losses: by the rules by which the search itself finds culprits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from smart_tuner.priors.document import LARGEST_EFFECT, Evidence
from smart_tuner.priors.observed import flags_of
from smart_tuner.samplers.route_sampler.allowances import learn_allowances
from smart_tuner.samplers.route_sampler.crashes import learn_crashes
from smart_tuner.samplers.route_sampler.keys import ACCURACY

if TYPE_CHECKING:
    import numpy.typing as npt

    from smart_tuner.priors.observed import ObservedStudy, Setting

    Flags = npt.NDArray[np.bool_]
    Figures = npt.NDArray[np.float64]

NORMAL_QUANTILE = 1.96
NOISE = 0.013
"""Usual standard deviation of a log ratio round the additive model."""

SLAB = 0.04
"""Usual standard deviation of an effect that is one."""

ACTIVE = 0.1
"""Usual share of values that matter."""

LUCK = 0.01
"""Standard deviation of what the study's one baseline engine moves all log ratios by: builds of one
route differ by about that."""

ACTIVE_WEIGHT = 20.0
NOISE_WEIGHT = 4.0
SLAB_WEIGHT = 4.0
"""In values or routes, what the usual figures weigh against a study's own."""

BURN_IN, KEPT = 80, 240
"""Rounds over all values. 400 values on 120 routes take a second; more rounds move no probability
by more than a few hundredths."""

IDLE = 0.01
"""Probability left that a value matters whose engine was the default's, byte for byte."""

SURE = 0.95
"""No study says of a value that it always breaks, or never matters, with more than this."""

DIGITS = 4


@dataclass(frozen=True, slots=True)
class Effects:
    """Posterior of effects; each of shape (settings,).

    Attributes:
        active: Probability that it is not zero.
        mean: Of the effect if it is not.
        spread: Standard deviation of that.
        noise: Standard deviation of one measurement.
    """

    active: Figures
    mean: Figures
    spread: Figures
    noise: float


def attribute(study: ObservedStudy) -> tuple[dict[Setting, Evidence], float]:
    """What a study says of each value that it tried, and its noise.

    The same study gives the same evidence.
    """
    settings = study.tried_settings()
    trials = study.trials
    flags = flags_of(trials, settings)
    failed = np.array([trial.failed for trial in trials], dtype=bool)
    unchanged = np.array([trial.unchanged for trial in trials], dtype=bool)
    idle = np.asarray(flags[unchanged].any(axis=0)) if len(trials) else np.zeros(0, dtype=bool)
    logs = np.array(
        [math.nan if t.log_ratio is None else t.log_ratio for t in trials], dtype=float
    )
    used = np.isfinite(logs) & ~unchanged & ~failed
    widths = np.array([trial.half_width or 0.0 for trial in trials], dtype=float)
    effects = infer_effects(flags[used] & ~idle, logs[used], widths[used] / NORMAL_QUANTILE)
    failure = 1 - np.exp(-learn_crashes(flags, failed).single)
    violation = _violation(study, flags)
    measured = flags & (np.isfinite(logs) & ~failed)[:, None]
    found = {}
    for column, item in enumerate(settings):
        is_idle = bool(idle[column])
        found[item] = Evidence(
            tried=int(flags[:, column].sum()),
            measured=int(measured[:, column].sum()),
            failed=int((flags[:, column] & failed).sum()),
            active=IDLE if is_idle else _rounded(effects.active[column], 1 - IDLE / 2),
            effect=0.0 if is_idle else _bounded(effects.mean[column]),
            spread=0.0 if is_idle else _bounded(effects.spread[column]),
            failure=_rounded(failure[column], 0.99),
            violation=None if violation is None else round(float(violation[column]), DIGITS),
        )
    return found, round(effects.noise, DIGITS)


def infer_effects(flags: Flags, log_ratio: Figures, extra: Figures) -> Effects:
    """Sample the posterior of sparse effects.

    Args:
        flags: Which route has which value; shape (routes, values).
        log_ratio: ln(latency ratio); shape (routes,).
        extra: Standard deviation of each measurement by itself; shape (routes,).
    """
    routes, values = flags.shape
    if not (routes and values):
        none = np.full(values, ACTIVE)
        return Effects(none, np.zeros(values), np.full(values, SLAB), NOISE)
    chain = _Chain(flags, log_ratio, (NOISE**2 + extra**2) / NOISE**2)
    total, first, second, noise = np.zeros(values), np.zeros(values), np.zeros(values), 0.0
    for turn in range(BURN_IN + KEPT):
        chain.sweep()
        if turn >= BURN_IN:
            total += chain.odds_kept
            first += chain.odds_kept * chain.expected
            second += chain.odds_kept * (chain.expected**2 + chain.width)
            noise += math.sqrt(chain.noise)
    weight = np.maximum(total, 1e-9)
    mean = first / weight
    spread = np.sqrt(np.maximum(second / weight - mean**2, 1e-8))
    return Effects(total / KEPT, mean, spread, noise / KEPT)


class _Chain:
    """A Gibbs sampler; deterministic.

    ``odds_kept``, ``expected`` and ``width`` are each value's conditional probability, mean and
    variance in the latest sweep: averaging them wastes less than averaging the draws.
    """

    def __init__(self, flags: Flags, target: Figures, relative: Figures) -> None:
        values = flags.shape[1]
        self.rows = [np.flatnonzero(flags[:, column]) for column in range(values)]
        self.residual = target.copy()
        self.effect = np.zeros(values)
        self.noise, self.slab, self.share = NOISE**2, SLAB**2, ACTIVE
        self.odds_kept = np.full(values, ACTIVE)
        self.expected, self.width = np.zeros(values), np.full(values, SLAB**2)
        self.random = np.random.default_rng(0)
        self.weight = 1 / relative
        self.luck = 0.0
        self.precise = [self.weight[rows] for rows in self.rows]
        self.amount = np.array([part.sum() for part in self.precise])

    def sweep(self) -> None:
        """Draw every effect, then what is common to all."""
        random = self.random
        uniform = random.random(len(self.rows))
        normal = random.standard_normal(len(self.rows))
        prior = math.log(self.share / (1 - self.share))
        for column, rows in enumerate(self.rows):
            now = self.effect[column]
            residual = self.residual[rows] + now
            width = 1 / (self.amount[column] / self.noise + 1 / self.slab)
            mean = width * float(self.precise[column] @ residual) / self.noise
            log_odds = prior + 0.5 * (math.log(width / self.slab) + mean * mean / width)
            chance = 1 / (1 + math.exp(-max(-40.0, min(40.0, log_odds))))
            new = mean + math.sqrt(width) * normal[column] if uniform[column] < chance else 0.0
            self.residual[rows] = residual - new
            self.effect[column] = new
            self.odds_kept[column], self.expected[column] = chance, mean
            self.width[column] = width
        self._luck()
        self._common()

    def _luck(self) -> None:
        """Draw what all ratios have in common: the baseline that they were taken against."""
        residual = self.residual + self.luck
        width = 1 / (self.weight.sum() / self.noise + 1 / LUCK**2)
        mean = width * float(self.weight @ residual) / self.noise
        self.luck = mean + math.sqrt(width) * float(self.random.standard_normal())
        self.residual = residual - self.luck

    def _common(self) -> None:
        """Share, size and noise, each drawn from its conjugate posterior."""
        active = self.effect[self.effect != 0]
        values, routes = self.effect.size, self.residual.size
        random = self.random
        yes = ACTIVE * ACTIVE_WEIGHT + active.size
        self.share = float(np.clip(random.beta(yes, ACTIVE_WEIGHT + values - yes), 1e-3, 0.7))
        sizes = SLAB_WEIGHT * SLAB**2 + float(active @ active)
        self.slab = float(np.clip(sizes / random.chisquare(SLAB_WEIGHT + active.size), 1e-4, 1.0))
        left = NOISE_WEIGHT * NOISE**2 + float(self.residual**2 @ self.weight)
        self.noise = float(np.clip(left / random.chisquare(NOISE_WEIGHT + routes), 1e-7, 0.1))


def _violation(study: ObservedStudy, flags: Flags) -> Figures | None:
    """Share of epsilon that each value is held to use, kept below 1; ``None`` if unchecked."""
    losses = np.array(
        [math.nan if t.violation is None else t.violation for t in study.trials], dtype=float
    )
    if not np.isfinite(losses).any():
        return None
    is_default = np.asarray(~flags.any(axis=1))
    learnt = learn_allowances(flags, {ACCURACY: losses}, is_default)
    return np.asarray(np.clip(learnt.use[0] ** (1 / learnt.power[0]), 0.0, SURE))


def _rounded(share: float, most: float) -> float:
    return round(float(min(most, max(1 - most, share))), DIGITS)


def _bounded(figure: float) -> float:
    return round(float(min(LARGEST_EFFECT, max(-LARGEST_EFFECT, figure))), DIGITS)
