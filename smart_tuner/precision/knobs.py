"""Regions as knobs: which values each may take, and which of them are searched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smart_tuner.errors import UserInputError
from smart_tuner.knobs.knob import Knob
from smart_tuner.precision.lower import takes
from smart_tuner.precision.store import PREFIX
from smart_tuner.precision.support import KEEP, VALUES
from smart_tuner.precision.view import key_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from smart_tuner.precision.regions import Region
    from smart_tuner.precision.support import PrecisionSupport
    from smart_tuner.precision.view import GraphView

SOURCE = "precision"


def chosen_values(support: PrecisionSupport, asked: Sequence[str]) -> tuple[str, ...]:
    """The values to search: those asked for, or all that the backend takes as usual.

    Raises:
        UserInputError: A value is unknown, or the backend does not take it.
    """
    usual = tuple(value for value in VALUES if support.values.get(value) == "")
    if not support.values:
        msg = f"{support.where} does not take models in another precision; leave out --regions."
        raise UserInputError(msg)
    for value in asked:
        if value not in support.values:
            listed = ", ".join(value for value in VALUES if value in support.values)
            what = "does not take it" if value in VALUES else "knows no such precision"
            msg = f"--precisions {value}: {support.where} {what}; it takes {listed}."
            raise UserInputError(msg)
    return tuple(value for value in VALUES if value in asked) or usual


def precision_knobs(
    view: GraphView, regions: Iterable[Region], values: Sequence[str], support: PrecisionSupport
) -> tuple[Knob, ...]:
    """One knob a region, with the values that something in it can take.

    Raises:
        UserInputError: No region can take any.
    """
    knobs = tuple(
        Knob(
            name=f"{PREFIX}{region.name}",
            values=(KEEP, *_values(view, region, values, support)),
            default=KEEP,
            help=f"Element type of {region.about}.",
            source=SOURCE,
        )
        for region in regions
    )
    if all(len(knob.values) == 1 for knob in knobs):
        msg = (
            f"No region can be lowered to {' or '.join(values)}: its operators or their weights do "
            "not allow it; give other --precisions, or leave out --regions."
        )
        raise UserInputError(msg)
    return knobs


def _values(
    view: GraphView, region: Region, values: Sequence[str], support: PrecisionSupport
) -> tuple[str, ...]:
    nodes = [node for node in view.nodes if key_of(node) in region.members]
    return tuple(
        value
        for value in values
        if any(takes(view, node, value, support.scheme) for node in nodes)
    )
