"""Knobs in groups that people can find their way in: by source, then by the start of the name."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from smart_tuner.knobs.knob import Knob


@dataclass(frozen=True, slots=True)
class KnobGroup:
    """Knobs of one source whose names start alike.

    Attributes:
        source: Where they were found; may be empty.
        prefix: What stands before the first ``:`` of their names; empty for the rest of a source.
        knobs: At least one.
    """

    source: str
    prefix: str
    knobs: tuple[Knob, ...]

    @property
    def title(self) -> str:
        """E.g. ``build route, kgen``."""
        prefix = self.prefix if self.prefix != self.source else ""
        return ", ".join(part for part in (self.source, prefix) if part) or "knobs"


def group_knobs(knobs: Iterable[Knob]) -> tuple[KnobGroup, ...]:
    """Group knobs; groups and the knobs in them keep the order in which they come.

    A prefix makes a group if at least two knobs of the source have it: ``copy_ppg`` and
    ``copy_ppg:keep_conv_move_exit`` do, ``s2hgemm`` alone belongs to the rest.
    """
    listed = tuple(knobs)
    shared = Counter(_key(knob) for knob in listed)
    groups: dict[tuple[str, str], list[Knob]] = {}
    for knob in listed:
        source, prefix = _key(knob)
        key = (source, prefix if shared[source, prefix] > 1 else "")
        groups.setdefault(key, []).append(knob)
    return tuple(
        KnobGroup(source, prefix, tuple(members)) for (source, prefix), members in groups.items()
    )


def _key(knob: Knob) -> tuple[str, str]:
    return knob.source, knob.name.partition(":")[0]
