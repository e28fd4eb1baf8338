"""Limits on an engine beside its accuracy: device memory, size of its file, time of its build."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from smart_tuner.errors import UserInputError

if TYPE_CHECKING:
    from collections.abc import Mapping

MEMORY, ENGINE_SIZE, BUILD_TIME = "memory", "engine_size", "build_time"
"""Names of the limits, under which constraints are kept."""

LARGEST_EXCESS = 6.0

_WORDS = {
    MEMORY: ("device memory", "--max-memory", "how much device memory an engine holds"),
    ENGINE_SIZE: ("engine size", "--max-engine-size", "how large an engine is"),
    BUILD_TIME: ("build time", "--max-build-time", "how long a build took"),
}
_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


@dataclass(frozen=True, slots=True)
class LimitUse:
    """A figure of an engine against its limit.

    Attributes:
        name: ``MEMORY``, ``ENGINE_SIZE`` or ``BUILD_TIME``.
        figure: What the engine takes, in bytes or seconds.
        limit: What it may take, above 0, in the same unit.
    """

    name: str
    figure: float
    limit: float

    @property
    def is_kept(self) -> bool:
        """Whether the figure is within the limit."""
        return self.figure <= self.limit

    @property
    def excess(self) -> float:
        """log10(figure / limit), without a unit as samplers add violations up; within +-6.

        Above 0 if and only if the limit is broken.
        """
        if self.figure <= 0:
            return -LARGEST_EXCESS
        excess = math.log10(self.figure / self.limit)
        return max(-LARGEST_EXCESS, min(LARGEST_EXCESS, excess))

    def __str__(self) -> str:
        what, flag, _ = _WORDS[self.name]
        relation = "within" if self.is_kept else "over"
        figure, limit = (amount(self.name, value) for value in (self.figure, self.limit))
        return f"{what} {figure} is {relation} {flag} {limit}"


@dataclass(frozen=True, slots=True)
class Limits:
    """What an engine may take; ``None`` is no limit.

    Attributes:
        memory_bytes: Device memory in bytes.
        engine_bytes: Size of the compiled artefact in bytes.
        build_seconds: Wall-clock seconds of the build.
    """

    memory_bytes: int | None = None
    engine_bytes: int | None = None
    build_seconds: float | None = None

    @property
    def asked(self) -> Mapping[str, float]:
        """The limits that are set, by name, always in the same order."""
        all_limits = {
            MEMORY: self.memory_bytes,
            ENGINE_SIZE: self.engine_bytes,
            BUILD_TIME: self.build_seconds,
        }
        return {name: float(limit) for name, limit in all_limits.items() if limit is not None}

    @property
    def identity(self) -> dict[str, str]:
        """What a resumed study must have in common; nothing where there are no limits."""
        return {f"limit {name}": repr(limit) for name, limit in self.asked.items()}

    def use(self, figures: Mapping[str, float | None]) -> tuple[LimitUse, ...]:
        """Hold figures of an engine against the limits.

        Args:
            figures: Figure by name; ``None`` where the backend cannot say.

        Raises:
            UserInputError: A limit is set on what the backend cannot say.
        """
        uses = []
        for name, limit in self.asked.items():
            figure = figures[name]
            if figure is None:
                _, flag, what = _WORDS[name]
                msg = f"This backend cannot say {what}: leave out {flag}."
                raise UserInputError(msg)
            uses.append(LimitUse(name, float(figure), limit))
        return tuple(uses)


def limit_words(name: str, limit: float) -> str:
    """A limit for people: ``engine size up to 10 MiB``."""
    return f"{_WORDS[name][0]} up to {amount(name, limit)}"


def amount(name: str, value: float) -> str:
    """A figure of a limit for people."""
    if name == BUILD_TIME:
        return f"{value:.3g} s"
    for size, unit in _UNITS:
        if value >= size:
            return f"{value / size:.4g} {unit}"
    return f"{value:.0f} B"
