"""Pieces of a page; every text that comes from a study is escaped here."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import plotly.graph_objects as go


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure with what it shows in words.

    Attributes:
        name: Of the element, unique on the page.
        words: What is to be seen, one or a few sentences; never empty.
        figure: The figure; ``None`` where there is no data, which the words say then.
    """

    name: str
    words: str
    figure: go.Figure | None


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def text(value: object) -> str:
    """Any value as text of a page."""
    return html.escape(str(value))


def prose(words: object) -> str:
    """A sentence; what stands between backticks is in the words of a machine."""
    pieces = text(words).split("`")
    if not len(pieces) % 2:
        return text(words)
    return "".join(
        f"<code>{_unbroken(piece)}</code>" if place % 2 else piece
        for place, piece in enumerate(pieces)
    )


def code(value: object) -> str:
    """A value in the words of a machine."""
    return f"<code>{text(value)}</code>"


def paragraph(words: object, *, kind: str = "") -> str:
    """One paragraph."""
    return f"<p{_class(kind)}>{prose(words)}</p>"


def listing(lines: Iterable[str], *, kind: str = "") -> str:
    """A list of sentences; nothing for none."""
    items = "".join(f"<li>{prose(line)}</li>" for line in lines)
    return f"<ul{_class(kind)}>{items}</ul>" if items else ""


def table(head: Sequence[str], rows: Iterable[Sequence[object]], *, numbers: int = 0) -> str:
    """A table; on a phone each row is a block, with the name of its column before each cell.

    Args:
        head: Names of the columns.
        rows: Cells; those that are ``Markup`` are taken as they are.
        numbers: How many columns at the end hold figures.
    """
    first = len(head) - numbers

    def cells(row: Sequence[object], tag: str) -> str:
        made = (
            f"<{tag}{_class('n' if place >= first else '')}{_head(head[place], tag)}>"
            f"{_cell(cell)}</{tag}>"
            for place, cell in enumerate(row)
        )
        return f"<tr>{''.join(made)}</tr>"

    body = "".join(cells(row, "td") for row in rows)
    return (
        f'<div class="scroll"><table><thead>{cells(head, "th")}</thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def folded(summary: str, content: str) -> str:
    """Content that is shown when asked for."""
    return f"<details><summary>{text(summary)}</summary>{content}</details>"


def picture(item: Picture) -> str:
    """A figure with its caption, or the reason why there is none."""
    if item.figure is None:
        return f'<p class="none" id="{item.name}">{prose(item.words)}</p>'
    height = int(item.figure.layout.height or 400)
    data = item.figure.to_json().replace("<", "\\u003c")
    return (
        f'<figure id="{item.name}"><div class="plot" role="img" style="height:{height}px" '
        f'data-figure="data-{item.name}" aria-label="{text(item.words)}"></div>'
        f"<figcaption>{prose(item.words)}</figcaption></figure>"
        f'<script type="application/json" id="data-{item.name}">{data}</script>'
    )


def section(name: str, title: str, parts: Iterable[str]) -> Iterator[str]:
    """A part of the page with a heading that can be linked to."""
    yield f'<section id="{name}"><h2>{text(title)}</h2>'
    yield from (part for part in parts if part)
    yield "</section>"


def _class(name: str) -> str:
    return f' class="{name}"' if name else ""


def _unbroken(escaped: str) -> str:
    """Words of a machine that may be parted at blanks only: a line must not end at a dash."""
    return " ".join(f'<span class="word">{word}</span>' for word in escaped.split(" "))


def _head(name: str, tag: str) -> str:
    return f' data-head="{text(name)}"' if tag == "td" else ""


def _cell(cell: object) -> str:
    return str(cell) if isinstance(cell, Markup) else text(cell)


def code_cell(value: object) -> Markup:
    """A cell in the words of a machine."""
    return Markup(code(value))


def route_cell(route: str) -> Markup:
    """A route, which breaks into lines between its knobs only."""
    return Markup(f"<code>{_unbroken(text(route or '(default)'))}</code>")


def answers(facts: Iterable[tuple[str, str]]) -> str:
    """Short answers, each beside its question."""
    rows = "".join(f"<dt>{text(name)}</dt><dd>{prose(words)}</dd>" for name, words in facts)
    return f'<dl class="brief">{rows}</dl>'
