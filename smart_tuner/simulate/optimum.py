"""The fastest feasible route of a landscape.

Values that cannot help in any route are left out first. What remains falls apart into groups of
knobs that share a pair or a gate; groups add up on the log latency and on the loss. A small group
is enumerated; a large one is split by fixing its most connected knob to each of its values in
turn, until small groups are left. Every group gives its Pareto front of loss against log latency,
and fronts are joined one after the other under the loss budget. The result is exact, unless a
group is too tangled to split (then a local search from many starts gives its front) or a front
has to be thinned.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from smart_tuner.simulate.landscape import Landscape

    Values = dict[str, str]
    Choices = Mapping[str, Sequence[str]]
    Front = list[tuple[float, float, Values]]  # loss, log latency, what is set

ROUTES_LIMIT = 32  # routes of one group that are enumerated
TRIES_LIMIT = 100_000  # routes that are enumerated in all
FRONT_LIMIT = 20_000  # points of a front
_PRICES = (0.0, 0.03, 0.1, 0.3, 1.0)  # log latency that a whole loss budget is worth


@dataclass(frozen=True, slots=True)
class Optimum:
    """The best feasible route that was found.

    Attributes:
        values: The knobs that differ from their default.
        log_latency: Natural logarithm of its latency over the default route's.
        is_exact: Whether it is certain that no feasible route is faster.
    """

    values: Mapping[str, str]
    log_latency: float
    is_exact: bool


def find_optimum(landscape: Landscape, budget: float) -> Optimum:
    """Find the fastest route that works and whose loss is at most ``budget``, which is >= 0."""
    useful = _useful_values(landscape, budget)
    solver = _Solver(landscape, useful, budget)
    front = solver.front(tuple(useful), {})
    # Losses that are added up in another order may pass the budget by the last bit.
    values = next(
        route
        for _, _, route in reversed(front)
        if landscape.truth(route).failure is None and landscape.truth(route).loss <= budget
    )
    kept = {
        name: value
        for name, value in values.items()
        if name in landscape.active(values) or _opens(landscape, name, value)
    }
    return Optimum(kept, landscape.truth(kept).log_latency, solver.is_exact)


class _TooTangledError(Exception):
    """A group of knobs falls apart too slowly to be split."""


class _Solver:
    """Fronts of groups of knobs; knows whether every one of them was exact."""

    def __init__(self, landscape: Landscape, useful: Choices, budget: float) -> None:
        self.is_exact = True
        self._landscape = landscape
        self._choices = {
            name: (landscape.defaults[name], *values) for name, values in useful.items()
        }
        self._budget = budget
        self._links: dict[str, set[str]] = {name: set() for name in useful}
        for first, second in _links(landscape, useful):
            if first in useful and second in useful:
                self._links[first].add(second)
                self._links[second].add(first)
        self._tries = 0

    def front(self, names: Iterable[str], fixed: Values) -> Front:
        """Return the front of some knobs on top of settings that are fixed.

        Losses and logs are what these knobs add to the fixed settings.
        """
        joined: Front = [(0.0, 0.0, {})]
        for group in self._groups(names):
            try:
                front = self._group_front(group, fixed)
            except _TooTangledError:
                if fixed:
                    raise
                front = self._searched_front(group)
            joined = self._join(joined, front)
        return joined

    def _groups(self, names: Iterable[str]) -> Iterator[list[str]]:
        """Split knobs into groups without a link between them."""
        left = dict.fromkeys(names)
        while left:
            group = [left.popitem()[0]]
            for name in group:  # grows while it is walked
                neighbours = [other for other in sorted(self._links[name]) if other in left]
                for other in neighbours:
                    del left[other]
                group.extend(neighbours)
            yield group

    def _group_front(self, group: list[str], fixed: Values) -> Front:
        choices = {name: self._choices[name] for name in group}
        routes = 1
        for values in choices.values():
            routes *= len(values)
        if routes <= ROUTES_LIMIT:
            return self._pareto(self._points(_all_routes(choices), fixed))
        if self._tries > TRIES_LIMIT:
            raise _TooTangledError
        return self._split_front(group, fixed)

    def _searched_front(self, group: list[str]) -> Front:
        self.is_exact = False
        self._tries = 0
        choices = {name: self._choices[name] for name in group}
        tried = _local_search(self._landscape, choices, self._budget)
        return self._pareto(self._points(tried, {}))

    def _split_front(self, group: list[str], fixed: Values) -> Front:
        members = set(group)
        # Parents before children: closing a gate never takes back a loss that is counted.
        roots = [name for name in group if members.isdisjoint(_ancestors(self._landscape, name))]
        knob = max(roots, key=lambda name: (len(self._links[name] & members), name))
        rest = [name for name in group if name != knob]
        points: Front = []
        for value in self._choices[knob]:
            for loss, log, _ in self._points([{knob: value}], fixed):
                points.extend(
                    (loss + more, log + further, {knob: value, **values})
                    for more, further, values in self.front(rest, {**fixed, knob: value})
                )
        return self._pareto(points)

    def _points(
        self, routes: Iterable[Values], fixed: Values
    ) -> Iterator[tuple[float, float, Values]]:
        """Yield what each route adds to the fixed settings, broken ones left out."""
        before = self._landscape.truth(fixed)
        for values in routes:
            self._tries += 1
            truth = self._landscape.truth({**fixed, **values})
            if truth.failure is None:
                yield truth.loss - before.loss, truth.log_latency - before.log_latency, values

    def _pareto(self, points: Iterable[tuple[float, float, Values]]) -> Front:
        """Keep the points within the budget that no other beats in both figures."""
        front: Front = []
        for point in sorted(points, key=lambda point: point[:2]):
            if point[0] <= self._budget * (1 + 1e-9) and (not front or point[1] < front[-1][1]):
                front.append(point)
        return front

    def _join(self, first: Front, second: Front) -> Front:
        """Add two fronts of knobs that do not interact."""
        losses = np.add.outer([point[0] for point in first], [point[0] for point in second])
        logs = np.add.outer([point[1] for point in first], [point[1] for point in second])
        order = np.lexsort((logs.ravel(), losses.ravel()))
        order = order[losses.ravel()[order] <= self._budget * (1 + 1e-9)]
        speeds = logs.ravel()[order]
        best = np.minimum.accumulate(np.concatenate(([np.inf], speeds[:-1])))
        order = order[speeds < best]
        if len(order) > FRONT_LIMIT:
            self.is_exact = False
            order = order[np.linspace(0, len(order) - 1, FRONT_LIMIT).astype(int)]
        return [
            (float(losses[i, j]), float(logs[i, j]), {**first[i][2], **second[j][2]})
            for i, j in zip(*np.unravel_index(order, losses.shape), strict=True)
        ]


def _useful_values(landscape: Landscape, budget: float) -> dict[str, tuple[str, ...]]:
    """Keep the values that are part of some best route.

    A value whose own effect with all its speeding pairs is no speed-up, and which opens no gate,
    can be reset in any route without making it slower, less accurate or broken.
    """
    joint: dict[tuple[str, str], float] = {}
    for pair in itertools.chain.from_iterable(landscape.pairs.values()):
        for setting in (pair.first, pair.second):
            joint[setting] = joint.get(setting, 0.0) + min(0.0, pair.log_latency)
    useful = {}
    for name, effects in landscape.effects.items():
        kept = tuple(
            value
            for value, effect in effects.items()
            if effect.failure is None and effect.loss <= budget
            if effect.log_latency + joint.get((name, value), 0.0) < 0
            or _opens(landscape, name, value)
        )
        if kept:
            useful[name] = kept
    return useful


def _opens(landscape: Landscape, name: str, value: str) -> bool:
    """Whether a value, not being the default, opens a gate."""
    return landscape.defaults[name] != value and any(
        gate.parent == name and gate.opened_by == value for gate in landscape.gates.values()
    )


def _links(landscape: Landscape, useful: Choices) -> Iterator[tuple[str, str]]:
    """Yield knobs that do not simply add up: children with every ancestor, and pairs."""
    for child in landscape.gates:
        for ancestor in _ancestors(landscape, child):
            yield ancestor, child
    for pair in itertools.chain.from_iterable(landscape.pairs.values()):
        if all(value in useful.get(name, ()) for name, value in (pair.first, pair.second)):
            yield pair.first[0], pair.second[0]


def _ancestors(landscape: Landscape, name: str) -> Iterator[str]:
    """Yield the knobs whose gates stand before this one, the parent first."""
    gate = landscape.gates.get(name)
    while gate is not None:
        yield gate.parent
        gate = landscape.gates.get(gate.parent)


def _all_routes(choices: Choices) -> Iterator[Values]:
    for values in itertools.product(*choices.values()):
        yield dict(zip(choices, values, strict=True))


def _local_search(landscape: Landscape, choices: Choices, budget: float) -> Iterator[Values]:
    """Yield local optima under several prices of loss, the first ones from the default."""
    draw = random.Random(0)
    moves = list(_moves(landscape, choices))
    for start, price in itertools.product(range(8), _PRICES):
        values = {name: landscape.defaults[name] for name in choices}
        if start:
            values |= {name: draw.choice(choices[name]) for name in choices if draw.random() < 0.3}
        yield _descend(landscape, values, moves, (budget, price))


def _moves(landscape: Landscape, choices: Choices) -> Iterator[Values]:
    """Single changes, and both values of a speeding pair at once."""
    for name, values in choices.items():
        for value in values:
            yield {name: value}
    for pair in itertools.chain.from_iterable(landscape.pairs.values()):
        if pair.log_latency < 0 and all(
            value in choices.get(name, ()) for name, value in (pair.first, pair.second)
        ):
            yield dict((pair.first, pair.second))


def _descend(
    landscape: Landscape, values: Values, moves: Sequence[Values], limits: tuple[float, float]
) -> Values:
    """Take the best move until none improves."""
    budget, price = limits

    def cost(route: Values) -> tuple[int, float]:
        truth = landscape.truth(route)
        broken = (truth.failure is not None) + (truth.loss > budget)
        if broken:
            return broken, float(len(landscape.active(route)))
        return broken, truth.log_latency + price * truth.loss / max(budget, 1e-300)

    best = cost(values)
    while True:
        found = min((cost({**values, **move}), index) for index, move in enumerate(moves))
        if found[0] >= best:
            return values
        best, values = found[0], {**values, **moves[found[1]]}
