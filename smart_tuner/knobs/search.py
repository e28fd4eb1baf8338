"""Finding knobs by words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from smart_tuner.knobs.database import KnobDatabase
    from smart_tuner.knobs.knob import Knob


def search_knobs(database: KnobDatabase, words: Iterable[str]) -> tuple[Knob, ...]:
    """Find the knobs that hold every word, whatever its case, in their name, help or source.

    The knob of that very name comes first, then those that hold every word in their name, then
    the others; within each group the database's order holds. No words find every knob.
    """
    wanted = [part.casefold().removeprefix("-") for word in words for part in word.split()]
    ranked = [(rank, knob) for knob in database if (rank := _rank(knob, wanted)) is not None]
    return tuple(knob for _, knob in sorted(ranked, key=lambda pair: pair[0]))


def _rank(knob: Knob, words: Sequence[str]) -> int | None:
    """0 for the very name, 1 for a match in the name, 2 for one elsewhere, None for none."""
    name = knob.name.casefold()
    if [name] == list(words):
        return 0
    if all(word in name for word in words):
        return 1
    everything = f"{name} {knob.help} {knob.source}".casefold()
    return 2 if all(word in everything for word in words) else None
