"""Reading a build route from its text, ``-conv_lowering=off -kgen:tiling=0``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smart_tuner.route.build_route import BuildRoute
from smart_tuner.route.grammar import check_fixed_value, knob_and_value, split_tokens

if TYPE_CHECKING:
    from smart_tuner.knobs.database import KnobDatabase


def parse_route(text: str, database: KnobDatabase) -> BuildRoute:
    """Read a route; ``str`` of it gives the canonical text. Empty text is the default route.

    Raises:
        UserInputError: A token is no ``-knob=value``, a knob is unknown or named twice, or does
            not take the value.
    """
    values: dict[str, str] = {}
    defaults: dict[str, str] = {}
    for token in split_tokens(text, "Cannot parse the route"):
        knob, value = knob_and_value(token, database)
        if "[" in value:
            remedy = "A route gives each knob one value; lists belong into expressions."
            token.refuse(f"Invalid value for knob: {token.shown}", remedy)
        check_fixed_value(token, knob, value)
        if knob.name in values:
            token.refuse(f"Duplicate knob in route: -{knob.name}", "Give each knob one value.")
        values[knob.name] = value
        defaults[knob.name] = knob.default
    return BuildRoute.of(values, defaults)
