"""The part of the knob database that a study searches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_tuner.knobs.knob import Knob


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """Knobs to vary, each with at least two choices; every other knob stays as the base has it."""

    knobs: tuple[Knob, ...]

    @property
    def choices(self) -> Mapping[str, tuple[str, ...]]:
        """Choices by knob name, the default first."""
        return {knob.name: knob.choices for knob in self.knobs}

    @property
    def defaults(self) -> Mapping[str, str]:
        """Default by knob name."""
        return {knob.name: knob.default for knob in self.knobs}
