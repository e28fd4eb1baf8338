"""Text that stays in its place in a Markdown page, whatever it holds."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def plain(text: object) -> str:
    """Text in one line that begins no HTML, link or emphasis."""
    line = html.escape(" ".join(str(text).split()), quote=False)
    return re.sub(r"([\\`*\[\]])", r"\\\1", line)


def sentence(text: str) -> str:
    """A sentence of ours, what it has in backquotes as code, the rest as plain text."""
    pieces = text.split("`")
    if len(pieces) % 2 == 0:
        return plain(text)
    return "".join(
        code(piece) if place % 2 else _edged(piece) for place, piece in enumerate(pieces)
    )


def _edged(text: str) -> str:
    """Plain text with the spaces around it, which stand beside code."""
    before, after = " " * text[:1].isspace(), " " * text[-1:].isspace()
    return f"{before}{plain(text)}{after}" if text.strip() else before


def code(text: object) -> str:
    """A code span in one line, fenced by more backticks than the text has in a row."""
    line = " ".join(str(text).split())
    longest = max(map(len, re.findall("`+", line)), default=0)
    fence = "`" * (longest + 1)
    room = " " if longest else ""
    return f"{fence}{room}{line}{room}{fence}"


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """Lines of a table; a bar inside a cell is escaped, in code spans too."""
    names = list(head)
    yield _row(names)
    yield _row(["---"] * len(names))
    for cells in rows:
        yield _row(cells)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
