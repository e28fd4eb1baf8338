"""The routes of an expression, in trtexec's order: ``fast``, ``full``, ``mixed``.

For ``-conv_lowering=[on|off] -kgen:tiling=[0|1|2]`` with defaults ``on`` and ``2``:

* ``fast`` is the baseline, then one knob away from it at a time, last knob first, listed values
  first to last: (on,2) (on,0) (on,1) (off,2);
* ``full`` is the product, the last knob varying fastest: (on,0) (on,1) (on,2) (off,0) ...
* ``mixed`` is ``fast``, then a product over what paid: ``smart_tuner.route.mixed``.

The baseline has every fixed knob at its value and every variable knob at its default, listed or
not. Differences from trtexec:

* ``full`` begins with the baseline when the product does not hold it; trtexec then measures no
  baseline, so that no gain can be told;
* no route comes twice: knobs and values are distinct, and routes are canonical.
"""

from __future__ import annotations

import math
from itertools import product
from typing import TYPE_CHECKING

from smart_tuner.errors import UserInputError
from smart_tuner.knobs.text import shown
from smart_tuner.route.build_route import BuildRoute

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from smart_tuner.knobs.database import KnobDatabase
    from smart_tuner.route.expression import Expression

SEARCH_MODES = ("fast", "full", "mixed")


def count_routes(expression: Expression, mode: str) -> int:
    """How many routes ``enumerate_routes`` gives, without going through them.

    For ``mixed`` this counts the first phase: the second depends on what the first one finds
    (``smart_tuner.route.mixed.count_second_phase``).

    Raises:
        UserInputError: Unknown mode.
    """
    if _checked_mode(mode) == "full":
        return math.prod(len(item.values) for item in expression.items) + _needs_baseline(
            expression
        )
    return 1 + sum(
        item.is_variable and value != item.knob.default
        for item in expression.items
        for value in item.values
    )


def enumerate_routes(
    expression: Expression, database: KnobDatabase, mode: str
) -> Iterator[BuildRoute]:
    """Give the routes of an expression one by one; ``mixed`` gives its first phase.

    Raises:
        UserInputError: Unknown mode, or an expression over another database; raised at the call.
    """
    check_expression(expression, database)
    return _full(expression) if _checked_mode(mode) == "full" else _fast(expression)


def baseline_route(expression: Expression) -> BuildRoute:
    """The route that an expression's others are compared with."""
    return route_of(expression, {})


def route_of(expression: Expression, values: Mapping[str, str]) -> BuildRoute:
    """The route with the given values, the expression's other knobs as in the baseline.

    Args:
        expression: Gives the knobs.
        values: Value by knob name, for any of the expression's knobs.
    """
    chosen = {item.knob.name: item.baseline for item in expression.items} | dict(values)
    return BuildRoute.of(chosen, {item.knob.name: item.knob.default for item in expression.items})


def check_expression(expression: Expression, database: KnobDatabase) -> None:
    """Check that an expression is one over this database.

    Raises:
        UserInputError: A knob is unknown there, or does not take a listed value.
    """
    for item in expression.items:
        knob = database[item.knob.name]
        if knob.default != item.knob.default or not all(map(knob.allows, item.values)):
            msg = (
                f"The expression was written for another knob database: {item} does not fit tuner "
                f"{database.tuner_version}, where the knob takes {', '.join(knob.choices)}. "
                "Parse it again with this database."
            )
            raise UserInputError(msg)


def _fast(expression: Expression) -> Iterator[BuildRoute]:
    yield baseline_route(expression)
    for item in reversed(expression.items):
        if item.is_variable:
            for value in item.values:
                if value != item.knob.default:
                    yield route_of(expression, {item.knob.name: value})


def _full(expression: Expression) -> Iterator[BuildRoute]:
    if _needs_baseline(expression):
        yield baseline_route(expression)
    names = [item.knob.name for item in expression.items]
    for values in product(*(item.values for item in expression.items)):
        yield route_of(expression, dict(zip(names, values, strict=True)))


def _needs_baseline(expression: Expression) -> bool:
    return any(item.baseline not in item.values for item in expression.items)


def _checked_mode(mode: str) -> str:
    if mode not in SEARCH_MODES:
        msg = f"Unknown search mode '{shown(mode)}'. Use one of {', '.join(SEARCH_MODES)}."
        raise UserInputError(msg)
    return mode
