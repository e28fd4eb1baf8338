"""Which knobs a generated compiler has: TensorRT's own names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smart_tuner.errors import UserInputError
from smart_tuner.knobs.knob import Knob
from smart_tuner.knobs.read import bundled_database
from smart_tuner.simulate.effects import Gate

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np

MAX_KNOBS = 2000


def choose_knobs(count: int, rng: np.random.Generator, *, families: bool) -> tuple[Knob, ...]:
    """Choose knobs of TensorRT's list, in its order; beyond its 209 names they are made up.

    Args:
        count: How many, 1 to 2,000.
        rng: Source of the choice.
        families: Prefer parents with their children, for gating.

    Raises:
        UserInputError: ``count`` is out of bounds.
    """
    if not 1 <= count <= MAX_KNOBS:
        msg = f"A simulated compiler has 1 to {MAX_KNOBS} knobs, not {count}."
        raise UserInputError(msg)
    listed = tuple(_closed(knob) for knob in bundled_database())
    order = [int(index) for index in rng.permutation(len(listed))]
    if families:
        order = _families_first(listed, order)
    chosen = [listed[index] for index in sorted(order[:count])]
    extra = (f"simulated:extra_{number}" for number in range(count - len(chosen)))
    return (*chosen, *(Knob(name, ("on", "off"), "on", source="simulated") for name in extra))


def parent_of(name: str, names: Iterable[str]) -> str | None:
    """Return the knob whose name is the longest ``parent`` in ``parent:...``; ``None`` without."""
    known = frozenset(names)
    while ":" in name:
        name = name.rpartition(":")[0]
        if name in known:
            return name
    return None


def draw_gates(
    knobs: tuple[Knob, ...], hidden: float, rng: np.random.Generator
) -> tuple[Gate, ...]:
    """Put a gate before every knob whose name extends another knob's.

    Args:
        knobs: The compiler's knobs.
        hidden: Probability that a parent's *non-default* value opens the gate, so that its
            children do nothing in routes near the default.
        rng: Source of the choice; children of one parent share it.
    """
    by_name = {knob.name: knob for knob in knobs}
    opened_by: dict[str, str] = {}
    gates = []
    for knob in knobs:
        parent = parent_of(knob.name, by_name)
        if parent is not None:
            if parent not in opened_by:
                choices = by_name[parent].choices
                opened_by[parent] = choices[1 if rng.random() < hidden else 0]
            gates.append(Gate(knob.name, parent, opened_by[parent]))
    return tuple(gates)


def _closed(knob: Knob) -> Knob:
    """Give an open integer knob a list: its default's neighbours by a factor of two."""
    values = knob.values
    if not values:
        default = int(knob.default)
        values = tuple(map(str, (default // 2, default * 2) if default else (1, 2)))
    return Knob(knob.name, values, knob.default, source="simulated")


def _families_first(knobs: tuple[Knob, ...], order: list[int]) -> list[int]:
    """Move whole families to the front: each parent right before its children."""
    names = {knob.name: index for index, knob in enumerate(knobs)}
    front: dict[int, None] = {}
    for index in order:
        line = [index]
        parent = parent_of(knobs[index].name, names)
        while parent is not None:
            line.append(names[parent])
            parent = parent_of(parent, names)
        if len(line) > 1:
            front |= dict.fromkeys(reversed(line))
    return [*front, *(index for index in order if index not in front)]
