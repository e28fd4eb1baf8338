"""What every export says beside its files."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from smart_tuner.report.export.winner import Winner

PAGE = "README.md"


@dataclass(frozen=True, slots=True)
class Export:
    """Files of another tool's form.

    Attributes:
        tool: Whose form, for the heading.
        about: One sentence by file, in the order in which they are listed.
        caution: What a user of that tool must know.
        without: Settings that the tool has no place for, and why.
        notes: What else a user should hear.
    """

    tool: str
    about: Mapping[str, str]
    caution: str
    without: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def page(winner: Winner, export: Export) -> str:
    """The ``README.md`` of an export."""
    return "".join(f"{line}\n" for line in _lines(winner, export))


def _lines(winner: Winner, export: Export) -> Iterator[str]:
    yield f"# {winner.original.name} for {export.tool}"
    yield ""
    yield f"Measured: {winner.gain}, {winner.platform}."
    yield f"Route: `{winner.manifest['route']}`"
    yield ""
    yield export.caution
    yield ""
    yield from (f"- `{name}`: {text}" for name, text in export.about.items())
    yield from _section(
        f"Settings that {export.tool} has no place for",
        (f"`{name}`: {why}" for name, why in export.without.items()),
    )
    yield from _section("Notes", export.notes)


def _section(title: str, items: Iterable[str]) -> Iterator[str]:
    listed = list(items)
    if listed:
        yield from ("", f"## {title}", "")
        yield from (f"- {item}" for item in listed)
