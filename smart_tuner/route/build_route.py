"""A build route: one combination of knob values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class BuildRoute:
    """The knob values that differ from the default, in one canonical order.

    ``BuildRoute()`` is the default route. Two routes with the same settings are equal and hash
    alike, whatever order they were given in.
    """

    settings: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, values: Mapping[str, str], defaults: Mapping[str, str]) -> BuildRoute:
        """Drop the values that are default and sort by name.

        Args:
            values: Value by knob name.
            defaults: Default by knob name, for at least these knobs.
        """
        kept = ((name, value) for name, value in values.items() if defaults[name] != value)
        return cls(tuple(sorted(kept)))

    @property
    def values(self) -> Mapping[str, str]:
        """Value by knob name, defaults left out."""
        return dict(self.settings)

    def __len__(self) -> int:
        return len(self.settings)

    def __str__(self) -> str:
        """The canonical text, e.g. ``-conv_lowering=off -kgen:tiling=0``; empty for the default."""
        return " ".join(f"-{name}={value}" for name, value in self.settings)
