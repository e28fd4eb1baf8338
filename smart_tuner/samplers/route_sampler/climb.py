"""From a route to a better one: change after change, gain weighed against risk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from smart_tuner.samplers.route_sampler.allowances import FULL

if TYPE_CHECKING:
    import numpy.typing as npt

    from smart_tuner.samplers.route_sampler.allowances import Allowances
    from smart_tuner.samplers.route_sampler.crashes import Crashes

    Flags = npt.NDArray[np.bool_]
    Figures = npt.NDArray[np.float64]

CAUTION = 1.75
"""Exponent of the probability that a route works. With 1, groups of unknown values grow until
two of three routes break; with 2, until two of five do."""

MAX_CHANGES = 80
"""No route is further than this from the one that it is made of."""


@dataclass(frozen=True, slots=True)
class Costs:
    """What routes are judged by.

    Attributes:
        knob: Index of the knob of each value; shape (values,).
        effect: Of each value on log latency, as drawn; shape (values,).
        crashes: Risks.
        allowances: Use of accuracy and the like.
    """

    knob: npt.NDArray[np.int64]
    effect: Figures
    crashes: Crashes
    allowances: Allowances


def climb(route: Flags, costs: Costs, limit: int = MAX_CHANGES) -> Flags:
    """Change knobs of a route, the best change first, each knob once at most.

    A change is worth taking while it raises (gain so far + its own gain) x P(works) ** CAUTION,
    all seen from the route that the climb starts at.

    Args:
        route: Which value it has; shape (values,). It is not changed.
        costs: What routes are judged by.
        limit: How many changes at most.
    """
    route = route.copy()
    gain = 0.0
    done = np.zeros(int(costs.knob.max(initial=-1)) + 1, dtype=bool)
    risk = costs.crashes.single + costs.crashes.pair[:, route].sum(axis=1)
    for _ in range(limit):
        gains, risks = _changes(route, costs, risk)
        gains[done[costs.knob]] = -1.0
        worth = np.where(gains > 0, (gain + gains) * np.exp(-CAUTION * risks), -1.0)
        best = int(np.argmax(worth)) if worth.size else -1
        if best < 0 or worth[best] <= gain:
            break
        gain += float(gains[best])
        done[costs.knob[best]] = True
        before = route.copy()
        flip(route, best, costs.knob)
        for value in np.flatnonzero(before != route):
            risk = risk + (1 if route[value] else -1) * costs.crashes.pair[value]
    return route


def trim(route: Flags, costs: Costs) -> Flags:
    """Set knobs back until the route keeps every limit that was lowered, the cheapest first.

    Where sums of uses are not to be trusted the best route so far is often one that kept its limit
    by luck, and what is near it does not.

    Args:
        route: Which value it has; shape (values,). It is not changed.
        costs: What routes are judged by.
    """
    route = route.copy()
    allowances = costs.allowances
    lowered = allowances.limit < FULL**allowances.power
    while (over := lowered & (allowances.used(route) > allowances.limit)).any():
        relief = np.where(route, allowances.use[over].sum(axis=0), 0.0)
        if not relief.any():
            break
        price = np.where(relief > 0, -costs.effect / np.maximum(relief, 1e-12), np.inf)
        route[int(price.argmin())] = False
    return route


def flip(route: Flags, value: int, knob: npt.NDArray[np.int64]) -> None:
    """Set a value, in place; or its knob's default if the route has the value already."""
    is_set = bool(route[value])
    route[knob == knob[value]] = False
    route[value] = not is_set


def _changes(route: Flags, costs: Costs, risk: Figures) -> tuple[Figures, Figures]:
    """Gain and added risk of flipping each value; a gain of -1 where it must not be done.

    ``risk`` is what each value adds to the route's, alone and with the values that it has.
    """
    present = np.flatnonzero(route)
    knob = costs.knob
    gains = _instead(knob, present, costs.effect) - costs.effect
    gains[present] = costs.effect[present]
    risks = risk - _instead(knob, present, risk)
    risks[present] = -risk[present]
    allowances = costs.allowances
    used = allowances.used(route)
    for much, row, limit in zip(used, allowances.use, allowances.limit, strict=True):
        more = row - _instead(knob, present, row)
        more[present] = -row[present]
        gains[(more > 1e-6) & (much + more > limit)] = -1.0
    return gains, np.maximum(risks, -5.0)


def _instead(
    knob: npt.NDArray[np.int64], present: npt.NDArray[np.int64], figures: Figures
) -> Figures:
    """For each value, the figure of the value that its knob has now; 0 for a default."""
    by_knob = np.zeros(int(knob.max(initial=-1)) + 1)
    by_knob[knob[present]] = figures[present]
    return np.asarray(by_knob[knob])
