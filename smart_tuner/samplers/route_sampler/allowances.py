"""What values use up of an allowance: accuracy loss of epsilon, memory of its limit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from smart_tuner.samplers.route_sampler.keys import ACCURACY

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    Flags = npt.NDArray[np.bool_]
    Figures = npt.NDArray[np.float64]

LARGEST = 30.0
"""Beyond this many allowances it makes no difference."""

ROUNDS = 40
SOFT = 0.05
"""Shares of an allowance that do not matter, so that small losses are not fitted to the last bit."""


@dataclass(frozen=True, slots=True)
class Allowances:
    """Shares of each allowance that are used up; one row a constraint, kept up to 1.

    Attributes:
        start: By the default route; shape (constraints,).
        use: By each value on top, at least 0; shape (constraints, values).
    """

    start: Figures
    use: Figures


def learn_allowances(
    flags: Flags, constraints: Mapping[str, Figures], default: Flags
) -> Allowances:
    """Attribute what routes use up to their values: contributions that add up, none below zero.

    Multiplicative updates (as in Lee and Seung, Nature 401, 1999) start from the largest share
    that each value can have: what the most frugal route with it uses.

    Args:
        flags: Which route has which value; shape (routes, values).
        constraints: Values of each constraint, NaN where it was not reached; shape (routes,).
        default: Which routes are the default; shape (routes,).
    """
    learnt = [
        _learn(flags[known], _used(key, values[known], default[known]), default[known])
        for key, values in constraints.items()
        if (known := np.isfinite(values)).any()
    ]
    return Allowances(
        np.array([start for start, _ in learnt]),
        np.array([use for _, use in learnt]).reshape(len(learnt), flags.shape[1]),
    )


def _used(key: str, values: Figures, default: Flags) -> Figures:
    """Shares of the allowance: 1 is all of it."""
    if key == ACCURACY:
        return np.minimum(10.0 ** np.minimum(values, 6.0), LARGEST)
    start = float(values[default].min()) if default.any() else math.nan
    scale = -start if start < 0 else max(float(np.abs(values).mean()), 1e-12)
    return np.minimum(1 + values / scale, LARGEST)


def _learn(flags: Flags, used: Figures, default: Flags) -> tuple[float, Figures]:
    start = float(used[default].min()) if default.any() else min(float(used.min()), 0.0)
    excess = np.maximum(used - start, 0.0)
    table = flags.astype(float)
    most = np.where(flags, excess[:, None], np.inf).min(axis=0, initial=np.inf)
    use = np.where(np.isfinite(most), 0.5 * most, 0.0)
    for _ in range(ROUNDS):
        fitted = table @ use + 1e-9
        weight = 1 / (fitted + SOFT)
        use = use * (table.T @ (weight * excess)) / np.maximum(table.T @ (weight * fitted), 1e-12)
    return start, use
