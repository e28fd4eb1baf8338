"""Routes in which values meet that never met: what two values do together shows in no other.

What a pair is worth cannot be foreseen, only come across. So knobs that seem not to matter are
set to the values that lack the most partners, one knob after the other, as covering arrays are
built (D. M. Cohen, S. R. Dalal, M. L. Fredman, G. C. Patton: The AETG System, IEEE Transactions
on Software Engineering 23, 1997). The values that matter stay: if a pair helps, the route is the
fastest so far.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from smart_tuner.samplers.route_sampler.climb import Costs

    Flags = npt.NDArray[np.bool_]
    Figures = npt.NDArray[np.float64]

TOLERANCE = 0.004
"""What a change may cost, ln(latency ratio), as is expected of the value alone."""

VALUABLE = 0.006
"""A value that is expected to gain more keeps its place."""

RISK = 0.35
"""Up to this sum of -ln(1 - probability) pairs may break the route."""


def cover(route: Flags, costs: Costs, tried: Flags, generator: np.random.Generator) -> Flags:
    """Set knobs that do not matter so that as many values as possible meet for the first time.

    Args:
        route: Which value it has; shape (values,). It is not changed.
        costs: What changes are judged by; effects as they are expected.
        tried: Values that may be set, since a feasible route had them; shape (values,).
        generator: Draws the order of the knobs and settles ties.
    """
    state = _State.of(route, costs, tried)
    # Columns come knob by knob; a knob with nothing but its default has none.
    starts = np.flatnonzero(np.diff(costs.knob, prepend=-1))
    ends = np.append(starts[1:], len(costs.knob))
    for knob in generator.permutation(len(starts)):
        state.settle(slice(starts[knob], ends[knob]), generator)
    return state.route


@dataclass(slots=True)
class _State:
    """A route in the making.

    Attributes:
        costs: What changes are judged by.
        tried: Values that may be set.
        strangers: 1 for pairs that no route that worked had, else 0.
        route: Which value it has.
        lacking: Strangers of each value in it.
        risk: What each value adds by its pairs in it.
        spent: Risk of all that was added.
        used: Of each allowance.
    """

    costs: Costs
    tried: Flags
    strangers: Figures
    route: Flags
    lacking: Figures
    risk: Figures
    used: Figures
    spent: float = 0.0

    @classmethod
    def of(cls, route: Flags, costs: Costs, tried: Flags) -> _State:
        """Begin with a route."""
        strangers = np.where(costs.crashes.cleared, 0.0, 1.0)
        lacking = strangers[:, route].sum(axis=1)
        risk = costs.crashes.pair[:, route].sum(axis=1)
        used = costs.allowances.used(route)
        return cls(costs, tried, strangers, route.copy(), lacking, risk, used)

    def settle(self, values: slice, generator: np.random.Generator) -> None:
        """Give one knob the value that lacks most partners, if it may be changed."""
        effect, present = self.costs.effect[values], self.route[values]
        now = float(effect[present].sum())
        if now < -VALUABLE:
            return
        old = [values.start + int(index) for index in np.flatnonzero(present)]
        for value in old:
            self._set(value, on=False)
        allowances = self.costs.allowances
        used = self.used[:, None] + allowances.use[:, values]
        fits = (used <= allowances.limit[:, None]).all(axis=0)
        allowed = self.tried[values] & fits & (effect - now < TOLERANCE)
        allowed &= self.spent + self.risk[values] <= RISK
        worth = np.where(allowed, self.lacking[values] + generator.random(effect.size), 0.0)
        best = values.start + int(np.argmax(worth))
        least = 1.0 if self.route.any() else 0.0  # the first value has nobody to meet yet
        chosen = [best] if worth.max() > least else old
        for value in chosen:
            self.spent += 0.0 if value in old else float(self.risk[value])
            self._set(value, on=True)

    def _set(self, value: int, *, on: bool) -> None:
        sign = 1.0 if on else -1.0
        self.route[value] = on
        self.lacking += sign * self.strangers[value]
        self.risk += sign * self.costs.crashes.pair[value]
        self.used += sign * self.costs.allowances.use[:, value]
