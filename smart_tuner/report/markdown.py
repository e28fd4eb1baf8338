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
