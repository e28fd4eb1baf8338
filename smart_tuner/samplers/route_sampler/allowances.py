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

ESTABLISHED = 3
"""A value seen in as many routes that ran has a use of its own; before, it is a suspect."""

ROUNDS = 40
FORESEEN = 0.5
"""Share of what a route used up that its values must explain; else one of them is convicted."""

SOFT = 0.05
"""Shares of an allowance that do not matter, so that small losses are not fitted to the last bit."""


@dataclass(frozen=True, slots=True)
class Allowances:
    """Shares of each allowance that are used up; one row a constraint, kept up to 1.

    Attributes:
        start: By the default route; shape (constraints,).
        use: By each value on top, at least 0; shape (constraints, values).
        most: What a value of few trials uses if it alone is behind what these used up and no
            other value explains; ``use`` for all other values; shape (constraints, values).
    """

    start: Figures
    use: Figures
    most: Figures

    def sample(self, generator: np.random.Generator) -> Allowances:
        """Draw culprits: each suspect uses all that it can or nothing, ``use`` on average.

        Without it, a value that was once seen beside a culprit would never be tried again.
        """
        hit = generator.random(self.use.shape) * self.most < self.use
        return Allowances(self.start, np.where(hit, self.most, 0.0), self.most)


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
        np.array([start for start, _, _ in learnt]),
        np.array([use for _, use, _ in learnt]).reshape(shape),
        np.array([most for _, _, most in learnt]).reshape(shape),
    )


def _used(key: str, values: Figures, default: Flags) -> Figures:
    """Shares of the allowance: 1 is all of it."""
    if key == ACCURACY:
        return np.minimum(10.0 ** np.minimum(values, 6.0), LARGEST)
    start = float(values[default].min()) if default.any() else math.nan
    scale = -start if start < 0 else max(float(np.abs(values).mean()), 1e-12)
    return np.minimum(1 + values / scale, LARGEST)


def _learn(flags: Flags, used: Figures, default: Flags) -> tuple[float, Figures, Figures]:
    start = float(used[default].min()) if default.any() else min(float(used.min()), 0.0)
    excess = np.maximum(used - start, 0.0)
    use = _convict(flags, excess, (used > 1) & (excess > 0))
    known = flags.sum(axis=0) >= ESTABLISHED
    unexplained = np.maximum(excess - flags @ np.where(known, use, 0.0), 0.0)
    most = np.where(known, use, np.maximum(_least(flags, unexplained), use))
    return start, use, most


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
    table = flags.astype(float)
    use = 0.5 * _least(flags, excess)
    for _ in range(ROUNDS):
        fitted = table @ use + 1e-9
        weight = 1 / (fitted + SOFT)
        use = use * (table.T @ (weight * excess)) / np.maximum(table.T @ (weight * fitted), 1e-12)
    return use


def _least(flags: Flags, excess: Figures) -> Figures:
    """For each value what the most frugal route with it uses; 0 for values in no route."""
    least = np.where(flags, excess[:, None], np.inf).min(axis=0, initial=np.inf)
    return np.where(np.isfinite(least), least, 0.0)
