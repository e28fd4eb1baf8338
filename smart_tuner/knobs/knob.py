"""One build knob."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Knob:
    """A knob as the backend lists it.

    Values are text, always: ``1``, ``True`` and ``"1"`` can never be confused.

    Attributes:
        name: Name without a leading dash; ``:`` separates sub-options.
        values: The values that may be searched, in the backend's order; empty when the knob is
            open and nobody gave it values.
        default: The value that the compiler uses when the knob is not set; may lie outside
            ``values``.
        help: One sentence.
        source: Where the knob was found, e.g. ``optimizer``, ``session``, ``build route``.
        is_open: Whether any text is legal as a value (integers without a list).
        opt_in: Why the knob is off unless asked for; empty when it is searched as usual.
        idle: Why the knob cannot act on the model at hand; empty when it can or nobody knows.
    """

    name: str
    values: tuple[str, ...]
    default: str
    help: str = ""
    source: str = ""
    is_open: bool = False
    opt_in: str = ""
    idle: str = ""

    @property
    def choices(self) -> tuple[str, ...]:
        """What a sampler may choose from: the default first, then the other values."""
        return (self.default, *(value for value in self.values if value != self.default))

    def allows(self, value: str) -> bool:
        """Whether the compiler would take this value."""
        return self.is_open or value in self.choices
