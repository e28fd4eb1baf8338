"""Who broke the routes that broke: single values first, pairs of values for what is left."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Flags = npt.NDArray[np.bool_]
    Figures = npt.NDArray[np.float64]

EXPECTED = 0.05
"""Share of values, and of pairs under suspicion, that break routes, before anything is seen."""

LUCK = 0.02
"""Chance that a route breaks without a culprit among its values."""

UNEXPLAINED = 0.5
"""A broken route asks for a pair if its values leave this much chance of innocence."""

ROUNDS, DAMPING = 40, 0.5
SURE = 1 - 1e-9


@dataclass(frozen=True, slots=True)
class SuspectPair:
    """Two columns of the table that never worked together.

    Attributes:
        first: Column.
        second: Column.
        risk: Probability that every route with both breaks.
        failed: Broken routes with both.
    """

    first: int
    second: int
    risk: float
    failed: int


@dataclass(frozen=True, slots=True)
class Culprits:
    """Who is to blame.

    Attributes:
        single: Probability by value that every route with it breaks; shape (values,).
        pairs: Pairs under suspicion, for routes that no single value explains.
    """

    single: Figures
    pairs: tuple[SuspectPair, ...]


def culprits(flags: Flags, broken: Flags) -> Culprits:
    """Find what broken routes have in common that working ones do not have.

    Args:
        flags: Which route has which value; shape (routes, values).
        broken: Which routes broke; shape (routes,).
    """
    bad, good = flags[broken], flags[~broken]
    single = np.zeros(flags.shape[1])
    if not len(bad):
        return Culprits(single, ())
    # Who worked once does not break routes alone.
    suspects = bad & ~good.any(axis=0)
    single = blame(suspects)
    innocent = np.prod(np.where(suspects, 1 - np.minimum(single, SURE), 1.0), axis=1)
    return Culprits(single, _pairs(bad[innocent > UNEXPLAINED], good))


def _pairs(unexplained: Flags, good: Flags) -> tuple[SuspectPair, ...]:
    """Share the blame for each route among the pairs in it that never worked."""
    works = (good.T.astype(np.float32) @ good.astype(np.float32)) > 0
    columns: dict[tuple[int, int], int] = {}
    cells: list[tuple[int, int]] = []
    for row, route in enumerate(unexplained):
        pairs = combinations(np.flatnonzero(route).tolist(), 2)
        cells += [
            (row, columns.setdefault(pair, len(columns))) for pair in pairs if not works[pair]
        ]
    if not cells:
        return ()
    table = np.zeros((len(unexplained), len(columns)), dtype=bool)
    table[tuple(zip(*cells, strict=True))] = True
    risk = blame(table)
    failed = table.sum(axis=0)
    return tuple(
        SuspectPair(*pair, float(risk[place]), int(failed[place]))
        for pair, place in columns.items()
    )


def blame(suspects: Flags) -> Figures:
    """Probability of each suspect that every route with it breaks.

    A route breaks if it holds at least one culprit, else by bad luck; suspects are culprits
    independently. How much a broken route says about one of them depends on how suspect the others
    are: belief propagation between routes and suspects, damped, since undamped rounds swing
    between "all of them" and "none" where several are always seen together.

    Args:
        suspects: Suspects in each broken route; shape (routes, suspects).

    Returns:
        Probabilities, shape (suspects,); 0 for those in no route.
    """
    prior = math.log(EXPECTED) - math.log1p(-EXPECTED)
    evidence = np.zeros(suspects.shape)
    for _ in range(ROUNDS):
        # What a suspect looks like to a route, that route's own evidence set aside.
        belief = _probability(prior + evidence.sum(axis=0) - evidence)
        good = np.where(suspects, np.log1p(-np.minimum(belief, SURE)), 0.0)
        others = good.sum(axis=1, keepdims=True) - good
        said = np.where(suspects, -np.log(-np.expm1(others + math.log1p(-LUCK))), 0.0)
        evidence = DAMPING * evidence + (1 - DAMPING) * said
    return np.where(suspects.any(axis=0), _probability(prior + evidence.sum(axis=0)), 0.0)


def _probability(log_odds: Figures) -> Figures:
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(log_odds, -40.0, 40.0))))
