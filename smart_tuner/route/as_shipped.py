"""What trtexec as shipped runs, faults and all: the opponent of a fair comparison.

Its ``fast`` order has no fault, so ``enumerate_routes(..., "fast")`` stands for it.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from smart_tuner.route.enumerate import check_expression, route_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from smart_tuner.knobs.database import KnobDatabase
    from smart_tuner.route.build_route import BuildRoute
    from smart_tuner.route.expression import Expression
    from smart_tuner.route.mixed import PositiveHit


def second_phase_as_shipped(
    expression: Expression, database: KnobDatabase, positives: Iterable[PositiveHit]
) -> Iterator[BuildRoute]:
    """Give trtexec's second phase: whole lists of the positive knobs, no cap, known routes again.

    It runs when there is more than one positive *value*, if only of one knob.

    Args:
        expression: What was swept.
        database: Its knobs.
        positives: Every value that was faster than the baseline, feasible or not.

    Raises:
        UserInputError: An expression over another database; raised at the call.
    """
    check_expression(expression, database)
    hits = tuple(positives)
    names = {hit.knob for hit in hits} if len(hits) > 1 else set()
    return _product(expression, names)


def full_as_shipped(expression: Expression, database: KnobDatabase) -> Iterator[BuildRoute]:
    """Give trtexec's ``full``: the bare product, with no baseline unless it is part of it.

    Raises:
        UserInputError: An expression over another database; raised at the call.
    """
    check_expression(expression, database)
    return _product(expression, {item.knob.name for item in expression.items})


def trtexec_text(expression: Expression, route: BuildRoute) -> str:
    """A route as trtexec writes it: every knob of the expression, in the expression's order."""
    values = {item.knob.name: item.knob.default for item in expression.items} | dict(route.values)
    return " ".join(f"-{name}={value}" for name, value in values.items())


def _product(expression: Expression, names: set[str]) -> Iterator[BuildRoute]:
    items = [item for item in expression.items if item.knob.name in names]
    for values in product(*(item.values for item in items)) if items else ():
        pairs = zip(items, values, strict=True)
        yield route_of(expression, {item.knob.name: value for item, value in pairs})
