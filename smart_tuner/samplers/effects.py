"""Effects of single values on log latency: additive, mostly zero, learned from few-flip routes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.linalg
from threadpoolctl import ThreadpoolController

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    import numpy.typing as npt

    Figures = npt.NDArray[np.float64]

NOISE = 0.012
"""Standard deviation of log latency around the additive model. Three times the usual measuring
noise, because the additive model is wrong as well."""

SLAB = 0.03
"""Standard deviation of the effect of a value that does something."""

SPIKE = 0.003
"""Standard deviation of the effect of a value that does nothing."""

ACTIVE_SHARE = 0.1
"""Share of values that do something, before anything is known."""

ROUNDS = 3

_BLAS = ThreadpoolController()


@dataclass(frozen=True, slots=True)
class Effects:
    """Gaussian beliefs on the effect of each value, ln(latency ratio); negative is faster.

    Attributes:
        prior_variance: Of each value, after shrinkage; shape (values,).
        mean: Posterior mean; shape (values,).
        flags: The measured routes; shape (routes, values).
        log_ratio: What was measured; shape (routes,).
        factor: Cholesky factor of the covariance of ``log_ratio``.
    """

    prior_variance: Figures
    mean: Figures
    flags: Figures
    log_ratio: Figures
    factor: tuple[Figures, bool]

    def sample(self, generator: np.random.Generator) -> Figures:
        """Draw one set of effects that agrees with the measurements (Matheron's rule)."""
        prior = generator.standard_normal(self.prior_variance.size)
        prior *= np.sqrt(self.prior_variance)
        noise = NOISE * generator.standard_normal(self.log_ratio.size)
        residual = self.log_ratio - self.flags @ prior - noise
        with one_thread():
            weights = scipy.linalg.cho_solve(self.factor, residual)
            return np.asarray(prior + self.prior_variance * (self.flags.T @ weights))


def fit_effects(flags: npt.NDArray[np.bool_], log_ratio: Figures) -> Effects:
    """Fit effects under a spike-and-slab prior, by a few rounds of reweighted ridge regression.

    Each round turns the evidence that a value does something (its marginal posterior under spike
    against slab) into its prior variance for the next round.

    Args:
        flags: Which route has which value; shape (routes, values).
        log_ratio: ln(latency / latency of the default route); shape (routes,).
    """
    table = flags.astype(float)
    active = np.full(table.shape[1], ACTIVE_SHARE)
    with one_thread():
        for _ in range(ROUNDS):
            effects, spread = _ridge(table, log_ratio, active)
            active = _active(effects.mean, spread, effects.prior_variance)
        return _ridge(table, log_ratio, active)[0]


def one_thread() -> AbstractContextManager[object]:
    """Keep linear algebra to one thread inside.

    Several, waiting busily for each other on a machine with other load, made an ask of 50 ms take
    850 ms. A proposal must not depend on the number of cores either.
    """
    limits: AbstractContextManager[object] = _BLAS.limit(limits=1, user_api="blas")
    return limits


def _ridge(table: Figures, log_ratio: Figures, active: Figures) -> tuple[Effects, Figures]:
    """Effects under independent normal priors, and their posterior variances."""
    variance = active * SLAB**2 + (1 - active) * SPIKE**2
    covariance = (table * variance) @ table.T
    covariance[np.diag_indices_from(covariance)] += NOISE**2
    factor = scipy.linalg.cho_factor(covariance, lower=True)
    mean = variance * (table.T @ scipy.linalg.cho_solve(factor, log_ratio))
    half = scipy.linalg.solve_triangular(factor[0], table, lower=True)
    spread = variance - variance**2 * (half**2).sum(axis=0)
    return Effects(variance, mean, table, log_ratio, factor), np.maximum(spread, 1e-12)


def _active(mean: Figures, spread: Figures, prior_variance: Figures) -> Figures:
    """Probability that each value does something, given its marginal likelihood alone."""
    # Divide the posterior by the prior: what the measurements say about this value.
    precision = np.maximum(1 / spread - 1 / prior_variance, 1e-9)
    seen, width = mean / spread / precision, 1 / precision
    slab, spike = width + SLAB**2, width + SPIKE**2
    log_odds = np.log(ACTIVE_SHARE / (1 - ACTIVE_SHARE)) + 0.5 * (
        np.log(spike / slab) + seen**2 * (1 / spike - 1 / slab)
    )
    return np.asarray(1 / (1 + np.exp(-np.clip(log_odds, -30, 30))))
