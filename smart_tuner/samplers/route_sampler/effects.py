"""Effects of values on log latency: they add up, and most are zero.

Each effect has a spike-and-slab prior: with some probability the value matters and its effect is
normal with a wide spread, else it is normal with a narrow one. The posterior is approximated by
normal ones, site by site (expectation propagation for spike and slab: J. M. Hernandez-Lobato,
D. Hernandez-Lobato, A. Suarez, Machine Learning 99, 2015).
"""

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

NOISE = 0.013
"""Standard deviation of log latency around the additive model. More than the usual measuring
noise, because the additive model is wrong as well."""

SLAB = 0.04
"""Standard deviation of the effect of a value that does something."""

SPIKE = 0.002
"""Standard deviation of the effect of a value that does nothing worth mentioning."""

ACTIVE_SHARE = 0.1
"""Share of values that do something, before anything is known."""

STEEPEST = 0.405
"""ln(latency ratio) from which on a slower route counts as broken, half as long again: something in
it is bad, and how bad it is says nothing of the other values."""

SWEEPS = 3
"""Rounds over all sites. More of them make the normal posterior too sure of itself."""

DAMPING = 0.8

_BLAS = ThreadpoolController()


@dataclass(frozen=True, slots=True)
class Prior:
    """What is held of each effect before a measurement; each of shape (values,).

    Attributes:
        active: Probability that the value does something.
        mean: Expected effect if it does, ln(latency ratio); negative is faster.
        spread: Standard deviation of that effect.
    """

    active: Figures
    mean: Figures
    spread: Figures

    @classmethod
    def cold(cls, count: int) -> Prior:
        """What is held of values that nobody knows anything of."""
        return cls(np.full(count, ACTIVE_SHARE), np.zeros(count), np.full(count, SLAB))


@dataclass(frozen=True, slots=True)
class _Sites:
    """Normal stand-ins for the priors, as mean and variance of each."""

    mean: Figures
    variance: Figures


@dataclass(frozen=True, slots=True)
class Effects:
    """Normal posterior of the effect of each value, ln(latency ratio); negative is faster.

    Attributes:
        mean: Of each effect; shape (values,).
        table: The measured routes; shape (routes, values).
        log_ratio: What was measured; shape (routes,).
        sites: What stands in for the priors.
        factor: Cholesky factor of the covariance of ``log_ratio``.
    """

    mean: Figures
    table: Figures
    log_ratio: Figures
    sites: _Sites
    factor: Figures

    def sample(self, generator: np.random.Generator) -> Figures:
        """Draw one set of effects that agrees with the measurements (Matheron's rule)."""
        sites = self.sites
        drawn = sites.mean + np.sqrt(sites.variance) * generator.standard_normal(sites.mean.size)
        noise = NOISE * generator.standard_normal(self.log_ratio.size)
        with one_thread():
            residual = self.log_ratio - self.table @ drawn - noise
            weights = scipy.linalg.cho_solve((self.factor, True), residual)
            return np.asarray(drawn + sites.variance * (self.table.T @ weights))


def fit_effects(flags: npt.NDArray[np.bool_], log_ratio: Figures, prior: Prior) -> Effects:
    """Fit the effects.

    Args:
        flags: Which route has which value; shape (routes, values).
        log_ratio: ln(latency / latency of the default route); shape (routes,).
        prior: What is held before.
    """
    table = flags.astype(float)
    sites = _Sites(*start_moments(prior))
    with one_thread():
        for sweep in range(SWEEPS):
            mean, variance = _posterior(table, log_ratio, sites)
            sites = _next_sites(prior, sites, mean, variance, DAMPING if sweep else 1.0)
        factor = _factor(table, sites)
        mean = _mean(table, log_ratio, sites, factor)
    return Effects(mean, table, log_ratio, sites, factor)


def very_slow(flags: npt.NDArray[np.bool_], log_ratio: Figures) -> npt.NDArray[np.bool_]:
    """Routes that take half as long again as the default, or as one all of whose values they have.

    What such a route has on top of the other one is bad. Compared with the default alone, a bad
    value would go unnoticed beside good ones, and be blamed on all that came with it.

    Args:
        flags: Which route has which value; shape (routes, values).
        log_ratio: ln(latency / latency of the default route), NaN where there is none; shape
            (routes,).

    Returns:
        Shape (routes,).
    """
    known = np.isfinite(log_ratio)
    with one_thread():
        lacking = (~flags).astype(np.float32) @ flags[known].astype(np.float32).T
    within = np.where(lacking == 0, log_ratio[known], 0.0)
    return np.asarray(log_ratio > within.min(axis=1, initial=0.0) + STEEPEST)


def one_thread() -> AbstractContextManager[object]:
    """Keep linear algebra to one thread inside.

    Several, waiting busily for each other on a machine with other load, made an ask of 50 ms take
    850 ms. A proposal must not depend on the number of cores either.
    """
    limits: AbstractContextManager[object] = _BLAS.limit(limits=1, user_api="blas")
    return limits


def start_moments(prior: Prior) -> tuple[Figures, Figures]:
    """Mean and variance of each effect before a measurement."""
    mean = prior.active * prior.mean
    second = prior.active * (prior.spread**2 + prior.mean**2) + (1 - prior.active) * SPIKE**2
    return mean, second - mean**2


def _factor(table: Figures, sites: _Sites) -> Figures:
    covariance = (table * sites.variance) @ table.T
    covariance[np.diag_indices_from(covariance)] += NOISE**2
    return np.asarray(scipy.linalg.cholesky(covariance, lower=True))


def _mean(table: Figures, log_ratio: Figures, sites: _Sites, factor: Figures) -> Figures:
    weights = scipy.linalg.cho_solve((factor, True), log_ratio - table @ sites.mean)
    return np.asarray(sites.mean + sites.variance * (table.T @ weights))


def _posterior(table: Figures, log_ratio: Figures, sites: _Sites) -> tuple[Figures, Figures]:
    """Means and variances, by way of whichever of routes and values are fewer."""
    if len(log_ratio) <= sites.mean.size:
        factor = _factor(table, sites)
        mean = _mean(table, log_ratio, sites, factor)
        half = scipy.linalg.solve_triangular(factor, table * sites.variance, lower=True)
        return mean, np.maximum(sites.variance - (half**2).sum(axis=0), 1e-12)
    precision = table.T @ table / NOISE**2
    precision[np.diag_indices_from(precision)] += 1 / sites.variance
    factor = scipy.linalg.cholesky(precision, lower=True)
    shift = table.T @ log_ratio / NOISE**2 + sites.mean / sites.variance
    mean = scipy.linalg.cho_solve((factor, True), shift)
    half = scipy.linalg.solve_triangular(factor, np.eye(mean.size), lower=True)
    return mean, np.maximum((half**2).sum(axis=0), 1e-12)


def _next_sites(
    prior: Prior, sites: _Sites, mean: Figures, variance: Figures, damping: float
) -> _Sites:
    """Match the moments of prior times cavity, the cavity being the posterior without the site."""
    precision = np.maximum(1 / variance - 1 / sites.variance, 1e-3)
    seen = (mean / variance - sites.mean / sites.variance) / precision
    width = 1 / precision
    slab, spike = width + prior.spread**2, width + SPIKE**2
    odds = np.log(prior.active / (1 - prior.active)) + 0.5 * (
        np.log(spike / slab) + seen**2 / spike - (seen - prior.mean) ** 2 / slab
    )
    active = 1 / (1 + np.exp(-np.clip(odds, -40, 40)))
    in_slab = (seen * prior.spread**2 + prior.mean * width) / slab
    in_spike = seen * SPIKE**2 / spike
    matched = active * in_slab + (1 - active) * in_spike
    second = active * (width * prior.spread**2 / slab + in_slab**2)
    second += (1 - active) * (width * SPIKE**2 / spike + in_spike**2)
    raw = 1 / (second - matched**2) - precision
    # A site may be neither wider than ten slab variances nor narrower than half a spike.
    bounded = np.clip(raw, 0.1 / prior.spread**2, 2 / SPIKE**2)
    shift = matched * (precision + bounded) - seen * precision
    new_precision = damping * bounded + (1 - damping) / sites.variance
    new_shift = damping * shift + (1 - damping) * sites.mean / sites.variance
    return _Sites(new_shift / new_precision, 1 / new_precision)
