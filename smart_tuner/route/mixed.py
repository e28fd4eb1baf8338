"""The second phase of ``mixed``: a product over the knobs that paid on their own.

A sweep in two pure steps: ``enumerate_routes(..., "fast")`` gives the first phase; with the gains
measured on it, ``positive_hits`` and ``second_phase`` give the second. What trtexec does otherwise:

* it counts good values, not knobs, so that two good values of one knob start a second phase that
  has nothing new; here two distinct knobs are needed;
* it takes a knob's whole list; here only the values that paid, and the default, listed or not;
* it defines a cap of ten knobs and never applies it; here the strongest ten are taken;
* it runs routes of the first phase again; here none;
* it lets routes count as positive that failed the accuracy check; here the caller passes the
  gains of feasible routes only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from smart_tuner.errors import UserInputError
from smart_tuner.knobs.text import shown
from smart_tuner.route.enumerate import check_expression, route_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from smart_tuner.knobs.database import KnobDatabase
    from smart_tuner.route.build_route import BuildRoute
    from smart_tuner.route.expression import Expression, ExpressionItem

MAX_POSITIVE_KNOBS = 10


@dataclass(frozen=True, slots=True)
class PositiveHit:
    """A value that was faster than the baseline on its own, on a feasible route.

    Attributes:
        knob: Name of the knob.
        value: The value that paid.
        gain: Baseline over candidate latency; above 1 is faster.
    """

    knob: str
    value: str
    gain: float


def positive_hits(
    expression: Expression, gains: Mapping[BuildRoute, float], minimum_gain: float = 1.0
) -> tuple[PositiveHit, ...]:
    """Find the values that paid in the first phase.

    Args:
        expression: What was swept.
        gains: Gain by route, for the feasible routes only; other routes are ignored.
        minimum_gain: Only gains above it count; raise it to the noise of the measurement.
    """
    return tuple(
        PositiveHit(item.knob.name, value, gain)
        for item in expression.items
        if item.is_variable
        for value in item.values
        if value != item.knob.default
        and (gain := gains.get(route_of(expression, {item.knob.name: value}), 0.0)) > minimum_gain
    )


def second_phase(
    expression: Expression,
    database: KnobDatabase,
    positives: Iterable[PositiveHit],
    cap: int = MAX_POSITIVE_KNOBS,
) -> Iterator[BuildRoute]:
    """Give the routes that combine what paid, the expression's last knob varying fastest.

    Args:
        expression: What was swept.
        database: Its knobs.
        positives: Hits of the first phase.
        cap: Only this many knobs, those with the largest gains, are combined.

    Raises:
        UserInputError: An expression over another database, or a hit that is none of its
            listed values; raised at the call.
    """
    check_expression(expression, database)
    return _combinations(expression, _strongest(expression, positives, cap))


def count_second_phase(
    expression: Expression, positives: Iterable[PositiveHit], cap: int = MAX_POSITIVE_KNOBS
) -> int:
    """How many routes ``second_phase`` gives, without going through them.

    Raises:
        UserInputError: A hit that is none of the expression's listed values.
    """
    sizes = [len(values) for values in _strongest(expression, positives, cap).values()]
    # Of the product, the baseline and the routes one knob away from it are known already.
    return math.prod(sizes) - 1 - sum(size - 1 for size in sizes)


def _strongest(
    expression: Expression, positives: Iterable[PositiveHit], cap: int
) -> dict[str, tuple[str, ...]]:
    """The values to combine by knob, the default among them, in the expression's order."""
    items = {item.knob.name: item for item in expression.items if item.is_variable}
    gains: dict[str, dict[str, float]] = {}
    for hit in positives:
        item = items.get(hit.knob)
        if item is None or hit.value not in item.values or hit.value == item.knob.default:
            msg = (
                f"-{shown(hit.knob)}={shown(hit.value)} is no value that the expression varies; "
                "pass the hits of its own first phase."
            )
            raise UserInputError(msg)
        gains.setdefault(hit.knob, {})[hit.value] = hit.gain
    ranked = sorted(gains, key=lambda name: max(gains[name].values()), reverse=True)
    kept = set(ranked[: max(cap, 0)])
    return {name: _choices(item, gains[name]) for name, item in items.items() if name in kept}


def _choices(item: ExpressionItem, good: Mapping[str, float]) -> tuple[str, ...]:
    default = item.knob.default
    listed = tuple(value for value in item.values if value in good or value == default)
    return listed if default in listed else (default, *listed)


def _combinations(
    expression: Expression, choices: Mapping[str, tuple[str, ...]]
) -> Iterator[BuildRoute]:
    known = route_of(expression, {})
    for values in product(*choices.values()):
        route = route_of(expression, dict(zip(choices, values, strict=True)))
        if len(set(route.settings) - set(known.settings)) > 1:
            yield route
