"""Which values, and which pairs of values, break routes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Flags = npt.NDArray[np.bool_]
    Figures = npt.NDArray[np.float64]

EXPECTED_SHARE = 0.04
"""Share of values that break something, before anything is known."""

EXPECTED_PAIR_SHARE = 3e-4
"""Share of pairs that break although neither value does."""

_SHARE, _PAIR_SHARE = np.meshgrid(
    [0.003, 0.01, 0.02, 0.04, 0.07, 0.12, 0.2, 0.35],
    [1e-5, 3e-4, 1e-3, 3e-3, 8e-3, 2e-2, 5e-2],
    indexing="ij",
)

CLEARED = 1e-2
"""Left of the prior once a value was part of a route that worked."""

LEAK = 1e-3
"""Chance that a route breaks by bad luck."""

WORST = 0.999
ROUNDS = 6


@dataclass(frozen=True, slots=True)
class Crashes:
    """Risks as -ln(1 - probability), so that they add up along a route.

    Attributes:
        single: That every route with a value breaks; shape (values,).
        pair: That every route with two values breaks; shape (values, values), zero diagonal.
        cleared: Pairs that a route that worked had, and such values on the diagonal; shape
            (values, values).
    """

    single: Figures
    pair: Figures
    cleared: Flags


@dataclass(frozen=True, slots=True)
class Progress:
    """How far routes were gone through, one after the other: they only become more.

    Whether one goes on from here or begins anew makes no difference but time.

    Attributes:
        flags: The routes; shape (routes, values).
        failed: Which of them broke.
        fit: Log posterior of each combination of shares.
        cleared: As in :class:`Crashes`.
    """

    flags: Flags
    failed: Flags
    fit: Figures
    cleared: Flags

    @classmethod
    def start(cls, values: int) -> Progress:
        """Before the first route of that many values."""
        fit = -0.5 * np.log(_SHARE / EXPECTED_SHARE) ** 2
        fit -= 0.125 * np.log(_PAIR_SHARE / EXPECTED_PAIR_SHARE) ** 2
        none, cleared = np.zeros((0, values), dtype=bool), np.zeros((values, values), dtype=bool)
        return cls(none, np.zeros(0, dtype=bool), fit, cleared)

    def leads_to(self, flags: Flags, failed: Flags) -> bool:
        """Whether these routes begin with those that were gone through."""
        count = len(self.failed)
        return np.array_equal(self.flags, flags[:count]) and np.array_equal(
            self.failed, failed[:count]
        )

    def after(self, flags: Flags, failed: Flags) -> Progress:
        """Go on to the last of these routes; anew if they do not begin with those gone through.

        Each route is a trial of the values and pairs that no route before it has cleared.
        """
        if not self.leads_to(flags, failed):
            return Progress.start(flags.shape[1]).after(flags, failed)
        survives, pair_survives = np.log1p(-_SHARE), np.log1p(-_PAIR_SHARE)
        count, fit, cleared = len(self.failed), self.fit.copy(), self.cleared.copy()
        for row, is_bad in zip(flags[count:], failed[count:], strict=True):
            values = np.flatnonzero(row)
            singles = int((~cleared[values, values]).sum())
            works = singles * survives + _open_pairs(cleared, values) * pair_survives
            fit += np.log(LEAK - np.expm1(works)) if is_bad else works
            if not is_bad:
                cleared[values[:, None], values] = True
        return Progress(flags, failed, fit, cleared)


def learn_crashes(
    flags: Flags,
    failed: Flags,
    prior: Figures | None = None,
    progress: Progress | None = None,
) -> Crashes:
    """Learn from all finished routes, in the order of their trials.

    Args:
        flags: Which route has which value; shape (routes, values).
        failed: Which routes broke; shape (routes,).
        prior: Probability that each value breaks routes, where something is held of it already
            and NaN elsewhere; shape (values,).
        progress: How far they were gone through already, which saves time.
    """
    progress = (progress or Progress.start(flags.shape[1])).after(flags, failed)
    share, pair_share = _shares(progress.fit)
    cleared = progress.cleared
    base = np.full(flags.shape[1], share)
    if prior is not None:
        base = np.where(np.isnan(prior), base, prior)
    base = np.where(cleared.diagonal(), base * CLEARED, base)
    bad = flags[failed]
    open_pairs = np.array([_open_pairs(cleared, np.flatnonzero(row)) for row in bad])
    leak = np.clip(-np.expm1(open_pairs * np.log1p(-pair_share)), LEAK, 0.9)
    single = blame(bad, base, leak) if len(bad) else base
    pair = np.where(cleared, 0.0, pair_share)
    np.fill_diagonal(pair, 0.0)
    _blame_pairs(bad, single, pair)
    single, pair = (-np.log1p(-np.minimum(risk, WORST)) for risk in (single, pair))
    return Crashes(single, pair, cleared)


def blame(bad: Flags, prior: Figures, leak: Figures) -> Figures:
    """Probability, for each value, that every route with it breaks.

    A route breaks if it holds at least one bad value, else with probability ``leak``; values are
    bad independently. What a broken route says about one of its values depends on how suspect
    the others are: belief propagation between routes and values.

    Args:
        bad: Values of the broken routes; shape (routes, values).
        prior: Probability of each value; shape (values,).
        leak: Probability of each route; shape (routes,).
    """
    prior_odds = np.log(prior) - np.log1p(-prior)
    evidence = np.zeros(bad.shape)
    for _ in range(ROUNDS):
        # What value k looks like to route i, its own evidence set aside.
        belief = _probability(prior_odds + evidence.sum(axis=0) - evidence)
        all_good = np.where(bad, np.log1p(-np.minimum(belief, 1 - 1e-9)), 0.0)
        others_good = all_good.sum(axis=1, keepdims=True) - all_good
        surely = others_good + np.log1p(-leak)[:, None]
        evidence = np.where(bad, -np.log(-np.expm1(surely)), 0.0)
    return _probability(prior_odds + evidence.sum(axis=0))


def _shares(fit: Figures) -> tuple[float, float]:
    """Shares of breaking values and of breaking pairs: means of the posterior."""
    weight = np.exp(fit - fit.max())
    weight /= weight.sum()
    return float((weight * _SHARE).sum()), float((weight * _PAIR_SHARE).sum())


def _open_pairs(cleared: Flags, values: npt.NDArray[np.int64]) -> float:
    part = ~cleared[values[:, None], values]
    return float(part.sum() - part.diagonal().sum()) / 2


def _blame_pairs(bad: Flags, single: Figures, pair: Figures) -> None:
    """Raise, in place, the risk of pairs inside routes that no single value explains."""
    kept = np.where(bad, np.log1p(-np.minimum(single, 1 - 1e-9)), 0.0).sum(axis=1)
    for row, unexplained in zip(bad, np.exp(kept), strict=True):
        present = np.flatnonzero(row)
        values = present[:, None], present
        total = pair[values].sum() / 2
        if unexplained > 0.05 and total > 0:
            raised = np.minimum(0.9, unexplained * pair[values] / total)
            pair[values] = np.maximum(pair[values], raised)


def _probability(log_odds: Figures) -> Figures:
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(log_odds, -40.0, 40.0))))
