"""Finds the culprits in failed groups: which values crash, or break epsilon."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Flags = npt.NDArray[np.bool_]
    Figures = npt.NDArray[np.float64]

PRIOR = 0.02
"""Share of values that break something, before anything is known."""

CLEARED = 1e-3
"""Left of the prior once a value was part of a route that worked."""

LEAK = 1e-3
"""Chance that a route is bad although none of its values is: a combination, or bad luck."""

ROUNDS = 6


def blame(bad: Flags, good: Flags) -> Figures:
    """Probability, for each value, that every route with it is bad.

    A route is bad if it holds at least one bad value, else with probability ``LEAK``; values are
    bad independently. A value seen in a good route is cleared. What a bad route says about one of its values depends on how
    suspect the others are: belief propagation between routes and values.

    Args:
        bad: Values of the bad routes; shape (routes, values).
        good: Values of the good routes; shape (routes, values).
    """
    prior = np.where(good.any(axis=0), CLEARED * PRIOR, PRIOR)
    prior_odds = np.log(prior) - np.log1p(-prior)
    evidence = np.zeros(bad.shape)
    for _ in range(ROUNDS):
        # What value k looks like to route i, its own evidence set aside.
        belief = _probability(prior_odds + evidence.sum(axis=0) - evidence)
        all_good = np.where(bad, np.log1p(-np.minimum(belief, 1 - 1e-9)), 0.0)
        others_good = all_good.sum(axis=1, keepdims=True) - all_good
        evidence = np.where(bad, -np.log(-np.expm1(others_good + np.log1p(-LEAK))), 0.0)
    return _probability(prior_odds + evidence.sum(axis=0))


def unexplained(bad: Flags, probability: Figures) -> Flags:
    """Those bad routes that no single value explains: a combination must be at fault."""
    kept = np.where(bad, np.log1p(-np.minimum(probability, 1 - 1e-9)), 0.0).sum(axis=1)
    return np.asarray(bad[-np.expm1(kept) < 0.5])


def _probability(log_odds: Figures) -> Figures:
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(log_odds, -40.0, 40.0))))
