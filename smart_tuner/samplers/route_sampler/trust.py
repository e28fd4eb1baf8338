"""Beliefs as priors, and how far the measurements so far bear them out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.linalg

from smart_tuner.samplers.route_sampler.crashes import EXPECTED_SHARE
from smart_tuner.samplers.route_sampler.effects import (
    NOISE,
    STEEPEST,
    Prior,
    one_thread,
    start_moments,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    from smart_tuner.samplers.route_sampler.beliefs import Beliefs, ValueBelief
    from smart_tuner.samplers.route_sampler.space import RouteSpace

    Flags = npt.NDArray[np.bool_]
    Figures = npt.NDArray[np.float64]

INITIAL_TRUST = 0.8
"""Probability that beliefs fit this workload, before anything is measured."""

LATEST = 120
"""Measured routes that decide: beliefs matter early, and by then they have been tested."""


@dataclass(frozen=True, slots=True)
class Held:
    """Beliefs on the columns of a space; each of shape (values,).

    Attributes:
        prior: On effects; the cold prior's figures where nothing is held.
        failure: Probability that a value breaks routes; NaN where nothing is held.
        violation: Probability that a value breaks a continuous constraint; 0 where nothing is.
    """

    prior: Prior
    failure: Figures
    violation: Figures

    @classmethod
    def of(cls, beliefs: Beliefs | None, space: RouteSpace) -> Held:
        """Look up what is held of each value that is not a default."""
        found = [
            None if beliefs is None else beliefs.values.get((space.names[k], space.choices[k][c]))
            for k, c in space.alternatives
        ]
        cold = Prior.cold(len(found))
        prior = Prior(
            _column(found, "active", cold.active),
            # As measurements: beyond, it makes no difference.
            np.array([0.0 if b is None else min(b.mean, STEEPEST) for b in found]),
            _column(found, "spread", cold.spread),
        )
        nothing = np.full(len(found), np.nan)
        violation = _column(found, "violation", np.zeros(len(found)))
        return cls(prior, _column(found, "failure", nothing), violation)

    def weighed(self, trust: float) -> Held:
        """Between what is held (trust 1) and the cold prior (trust 0)."""
        cold = Prior.cold(self.failure.size)
        prior, mean = self.prior, trust * self.prior.mean
        second = trust * (prior.spread**2 + prior.mean**2) + (1 - trust) * cold.spread**2
        return Held(
            Prior(
                trust * prior.active + (1 - trust) * cold.active,
                mean,
                np.sqrt(np.maximum(second - mean**2, 1e-8)),
            ),
            trust * self.failure + (1 - trust) * EXPECTED_SHARE,
            trust * self.violation,
        )


def trust_in(held: Held, flags: Flags, log_ratio: Figures, failed: Flags) -> float:
    """Probability that beliefs fit this workload better than no beliefs do.

    Both predict every outcome so far; Bayes' rule weighs their predictions. Misleading beliefs
    lose all trust within a dozen trials.

    Args:
        held: The beliefs, in full.
        flags: Which finished route has which value; shape (routes, values).
        log_ratio: ln(latency ratio); NaN where nothing was measured; shape (routes,).
        failed: Which routes broke; shape (routes,).
    """
    cold = Prior.cold(flags.shape[1])
    rows = np.flatnonzero(np.isfinite(log_ratio) & flags.any(axis=1))[:LATEST]
    table, target = flags[rows].astype(float), log_ratio[rows]
    evidence = _evidence(held.prior, table, target) - _evidence(cold, table, target)
    share = np.where(np.isnan(held.failure), EXPECTED_SHARE, held.failure)
    evidence += _foreseen(flags, failed, share)
    evidence -= _foreseen(flags, failed, np.full(share.size, EXPECTED_SHARE))
    odds = INITIAL_TRUST / (1 - INITIAL_TRUST) * np.exp(np.clip(evidence, -30.0, 30.0))
    return float(odds / (1 + odds))


def _column(found: list[ValueBelief | None], name: str, cold: Figures) -> Figures:
    values = [None if belief is None else getattr(belief, name) for belief in found]
    return np.array(
        [own if value is None else value for value, own in zip(values, cold, strict=True)],
        dtype=float,
    )


def _evidence(prior: Prior, table: Figures, target: Figures) -> float:
    """Log density of the measurements, the prior taken as normal with the same moments."""
    mean, variance = start_moments(prior)
    covariance = (table * variance) @ table.T
    covariance[np.diag_indices_from(covariance)] += NOISE**2
    with one_thread():
        factor = scipy.linalg.cholesky(covariance, lower=True)
        scaled = scipy.linalg.solve_triangular(factor, target - table @ mean, lower=True)
    return float(-0.5 * (scaled**2).sum() - np.log(factor.diagonal()).sum())


def _foreseen(flags: Flags, failed: Flags, share: Figures) -> float:
    """Log probability of which routes broke, values breaking independently; each cleared once."""
    cleared = flags[~failed].any(axis=0)
    works = np.log1p(-share)
    suspects = (flags[failed] & ~cleared).astype(float) @ works
    breaks = np.log(-np.expm1(np.minimum(suspects, -1e-3)))
    return float(works[cleared].sum() + breaks.sum())
