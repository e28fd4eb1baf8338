"""What values use up of an allowance: accuracy loss of epsilon, memory of its limit."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from smart_tuner.samplers.route_sampler.keys import ACCURACY

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    Flags = npt.NDArray[np.bool_]
    Figures = npt.NDArray[np.float64]

FULL = 0.97
"""Share of an allowance that routes are filled up to, as long as sums of uses are to be trusted."""

LOWER, HIGHER = 0.08, 0.014
"""By how much ln of that share falls with a route that goes over all the same, and rises with one
that does not: they balance when 15 of 100 go over (tracking a quantile, as in Gibbs and Candes,
Adaptive Conformal Inference, NeurIPS 2021)."""

LEAST_FULL = 0.3
"""It falls no further than this."""

POWERS = (1.0, 2.0)
"""Losses add up as they are, or as rounding errors that know nothing of each other do: squared."""

LARGEST = 30.0
"""Beyond this many allowances it makes no difference."""

ESTABLISHED = 3
"""A value seen in as many routes that ran has a use of its own; before, it is a suspect."""

ROUNDS = 40
FORESEEN = 0.5
"""Share of what a route used up that its values must explain; else one of them is convicted."""

SOFT = 0.05
"""Shares of an allowance that do not matter, so that small losses are not fitted to the last bit."""


@dataclass(frozen=True, slots=True)
class Allowances:
    """Shares of each allowance that are used up, to the power in which they add up.

    Attributes:
        start: By the default route; shape (constraints,).
        use: By each value on top, at least 0; shape (constraints, values).
        most: What a value of few trials uses if it alone is behind what these used up and no
            other value explains; ``use`` for all other values; shape (constraints, values).
        limit: Up to which share routes are filled; shape (constraints,).
        power: In which shares add up; shape (constraints,).
    """

    start: Figures
    use: Figures
    most: Figures
    limit: Figures
    power: Figures

    def used(self, route: Flags) -> Figures:
        """What a route is expected to use up of each, to its power; shape (constraints,)."""
        return np.asarray(self.start + self.use[:, route].sum(axis=1))

    def sample(self, generator: np.random.Generator) -> Allowances:
        """Draw culprits: each suspect uses all that it can or nothing, ``use`` on average.

        Without it, a value that was once seen beside a culprit would never be tried again.
        """
        hit = generator.random(self.use.shape) * self.most < self.use
        return replace(self, use=np.where(hit, self.most, 0.0))


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
    shape = (len(learnt), flags.shape[1])
    return Allowances(
        start=np.array([one.start for one in learnt]),
        use=np.array([one.use for one in learnt]).reshape(shape),
        most=np.array([one.most for one in learnt]).reshape(shape),
        limit=np.array([one.limit for one in learnt]),
        power=np.array([one.power for one in learnt]),
    )


def _used(key: str, values: Figures, default: Flags) -> Figures:
    """Shares of the allowance: 1 is all of it."""
    if key == ACCURACY:
        return np.minimum(10.0 ** np.minimum(values, 6.0), LARGEST)
    start = float(values[default].min()) if default.any() else math.nan
    scale = -start if start < 0 else max(float(np.abs(values).mean()), 1e-12)
    return np.minimum(1 + values / scale, LARGEST)


@dataclass(frozen=True, slots=True)
class _Learnt:
    """One row of :class:`Allowances`, and how far it is from what was used."""

    start: float
    use: Figures
    most: Figures
    limit: float
    power: float
    error: float


def _learn(flags: Flags, used: Figures, default: Flags) -> _Learnt:
    """Let shares add up in the power that tells best what routes used."""
    fill = _fill(flags, used > 1)
    learnt = (_in_power(flags, used, default, power, fill) for power in POWERS)
    return min(learnt, key=lambda one: one.error)


def _in_power(flags: Flags, used: Figures, default: Flags, power: float, fill: float) -> _Learnt:
    raised = np.maximum(used, 0.0) ** power
    start = float(raised[default].min()) if default.any() else min(float(raised.min()), 0.0)
    excess = np.maximum(raised - start, 0.0)
    use = _convict(flags, excess, (used > 1) & (excess > 0))
    known = flags.sum(axis=0) >= ESTABLISHED
    unexplained = np.maximum(excess - flags @ np.where(known, use, 0.0), 0.0)
    most = np.where(known, use, np.maximum(_least(flags, unexplained), use))
    told = np.maximum(start + flags @ use, 0.0) ** (1 / power)
    error = float(np.abs(np.log((told + SOFT) / (np.maximum(used, 0.0) + SOFT))).mean())
    return _Learnt(start, use, most, fill**power, power, error)


def _fill(flags: Flags, is_over: Flags) -> float:
    """How far to fill routes, after those that should have kept the limit as far as one knew.

    That is, every value was established, and had been in a route that kept it.
    """
    seen = flags.cumsum(axis=0) - flags
    kept = flags & ~is_over[:, None]
    is_known = (seen >= ESTABLISHED) & (kept.cumsum(axis=0) - kept > 0)
    fill = most = math.log(FULL)
    for row in np.flatnonzero(flags.any(axis=1) & (is_known | ~flags).all(axis=1)):
        fill = min(most, fill - LOWER if is_over[row] else fill + HIGHER)
    return max(LEAST_FULL, math.exp(fill))


def _convict(flags: Flags, excess: Figures, is_over: Flags) -> Figures:
    """What each value uses; what adds up, and of those that no sum blames, what they do mostly.

    A value that breaks accuracy unless another one makes up for it has a route in which it used
    nothing. So where routes went over an allowance although their values leave room, that value is
    convicted that is in the most routes that did, less those that did not, and explains the former.
    """
    use, left, convicted = _fit(flags, excess), np.ones(len(excess), dtype=bool), {}
    while (puzzling := left & is_over & (flags @ use < FORESEEN * excess)).any():
        balance = flags[left & is_over].sum(axis=0) - flags[left & ~is_over].sum(axis=0)
        worst = int(np.where(flags[puzzling].any(axis=0), balance, 0).argmax())
        if balance[worst] <= 0:
            break
        explained = is_over & flags[:, worst]
        convicted[worst] = excess[explained].min()
        left &= ~explained
        use = _fit(flags[left], excess[left])
        use[list(convicted)] = list(convicted.values())
    return use


def _fit(flags: Flags, excess: Figures) -> Figures:
    """Uses that add up to what routes used, none below zero."""
    use = 0.5 * _least(flags, excess)
    some = use > 0  # what begins at zero stays there
    rows = flags[:, some].any(axis=1)
    table, excess = flags[np.ix_(rows, some)].astype(float), excess[rows]
    active = use[some]
    for _ in range(ROUNDS):
        fitted = table @ active + 1e-9
        weight = 1 / (fitted + SOFT)
        change = table.T @ (weight * excess) / np.maximum(table.T @ (weight * fitted), 1e-12)
        active = active * change
    use[some] = active
    return use


def _least(flags: Flags, excess: Figures) -> Figures:
    """For each value what the most frugal route with it uses; 0 for values in no route."""
    least = np.where(flags, excess[:, None], np.inf).min(axis=0, initial=np.inf)
    return np.where(np.isfinite(least), least, 0.0)
