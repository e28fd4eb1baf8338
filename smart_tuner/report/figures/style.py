"""What all figures have in common: colours that hold on light and on dark, room, words."""

from __future__ import annotations

import html
import textwrap
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go

from smart_tuner.report.words import DEFAULT_WORD, shortened

if TYPE_CHECKING:
    from collections.abc import Mapping

GOOD, BAD, PLAIN, QUIET, LINE = "#1f9d55", "#d64545", "#3b82f6", "#8b95a5", "#c27803"
"""Faster or kept, slower or broken, neutral, of no interest, a limit."""

OUTCOMES: Mapping[str, tuple[str, str]] = {
    "ok": (PLAIN, "circle"),
    DEFAULT_WORD: (GOOD, "star"),
    "no effect": (QUIET, "circle-open"),
    "over epsilon": ("#e08a1e", "diamond"),
    "over limit": ("#b7791f", "diamond-open"),
    "build failed": (BAD, "x"),
    "run failed": ("#d6409f", "cross"),
    "timed out": ("#8e6ae0", "triangle-up"),
    "not applied": ("#64748b", "square-open"),
}
"""Colour and symbol by outcome in words: the symbol tells who cannot see the colour."""

LONG = 180
"""Spans beyond so many seconds are told in minutes, beyond so many minutes in hours."""

FEW = 10
"""Trials below which each has a tick of its own."""

LABEL_ROOM = 30
ROUTE_ROOM, ROUTE_LINE = 240, 80


def new_figure(
    *, x: str = "", y: str = "", height: int = 420, legend: bool = True, **layout: Any
) -> go.Figure:
    """An empty figure, transparent, with axis titles.

    Args:
        x: Title of the x axis.
        y: Title of the y axis.
        height: In pixels.
        legend: Whether to explain the traces, above the plot.
        **layout: Further layout properties.
    """
    figure = go.Figure()
    figure.update_layout(
        template="none",
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        height=height,
        margin={"l": 60, "r": 16, "t": 16, "b": 56},
        font={"color": QUIET, "size": 12},
        hoverlabel={"align": "left", "namelength": 0},
        showlegend=legend,
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        xaxis={**AXIS, "title": {"text": x}},
        yaxis={**AXIS, "title": {"text": y}},
    )
    figure.update_layout(**layout)
    return figure


AXIS: Mapping[str, Any] = {
    "gridcolor": "rgba(139,149,165,0.25)",
    "zeroline": False,
    "automargin": True,
}


def time_unit(seconds: float) -> tuple[float, str]:
    """Seconds in the unit that suits a span, and its name."""
    if seconds < LONG:
        return 1.0, "seconds"
    return (60.0, "minutes") if seconds < 60 * LONG else (3600.0, "hours")


def shown(text: str) -> str:
    """Text as plotly shows it, whatever it holds."""
    return html.escape(text, quote=False)


def label(knob: str, value: str) -> str:
    """A short name for a knob's value; the whole one belongs into the hover text."""
    room = LABEL_ROOM - len(value) - 1
    name = knob if len(knob) <= room else f"\N{HORIZONTAL ELLIPSIS}{knob[-max(8, room - 1) :]}"
    return shown(f"{name}={shortened(value, LABEL_ROOM)}")


def route_lines(route: str) -> str:
    """A route in lines for hover text, cut where it is very long."""
    text = shortened(route or "(default)", ROUTE_ROOM)
    lines = textwrap.wrap(text, ROUTE_LINE, break_on_hyphens=False)
    return "<br>".join(shown(line) for line in lines)
