"""The picture of the search: its history."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from plotly.subplots import make_subplots

from smart_tuner.report.figures.style import (
    AXIS,
    FEW,
    GOOD,
    LINE,
    OUTCOMES,
    QUIET,
    new_figure,
    route_lines,
    shown,
    time_unit,
)
from smart_tuner.report.words import percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    import plotly.graph_objects as go

    from smart_tuner.report.analysis.history import History, HistoryPoint

UNMEASURED = "not measured"
MANY = 400
"""Points beyond which intervals of single trials are left out: they would hide the points."""


def history_figure(history: History) -> go.Figure:
    """Gain of each trial by outcome, the best so far, failures below, the budget at the bottom."""
    points = history.points
    failed = any(point.gain is None for point in points)
    figure = make_subplots(
        rows=3 if failed else 2,
        cols=1,
        shared_xaxes=True,
        row_heights=[0.62, 0.16, 0.22] if failed else [0.74, 0.26],
        vertical_spacing=0.04,
        figure=new_figure(height=560 if failed else 480),
    )
    for word in dict.fromkeys(point.word for point in points):
        group = [point for point in points if point.word == word]
        _outcome(figure, word, group, low=history.gain_range[0])
    figure.add_scatter(
        x=[point.number for point in points],
        y=[point.incumbent for point in points],
        name="best so far",
        mode="lines",
        line={"shape": "hv", "color": GOOD, "width": 2},
        hovertemplate="best up to trial %{x}: %{y:.3f}x<extra></extra>",
        row=1,
        col=1,
    )
    _time_row(figure, history, row=3 if failed else 2)
    _gain_axis(figure, history)
    if failed:
        rows = {"categoryorder": "array", "categoryarray": [UNMEASURED]}
        figure.update_yaxes(**rows, title_text="no latency", showticklabels=False, row=2, col=1)
    return figure


def _time_row(figure: go.Figure, history: History, *, row: int) -> None:
    """The time that trials took, and the budget."""
    last = history.points[-1]
    budget = history.budget_seconds if math.isfinite(history.budget_seconds) else 0.0
    unit, name = time_unit(max(last.seconds, budget))
    figure.add_scatter(
        x=[point.number for point in history.points],
        y=[point.seconds / unit for point in history.points],
        name="time in trials",
        mode="lines",
        line={"color": QUIET},
        fill="tozeroy",
        fillcolor="rgba(139,149,165,0.2)",
        hovertemplate=f"%{{y:.1f}} {name} up to trial %{{x}}<extra></extra>",
        showlegend=False,
        row=row,
        col=1,
    )
    if budget:
        figure.add_hline(
            budget / unit,
            line_dash="dash",
            line_color=LINE,
            annotation_text="budget, finalists included",
            annotation_font_color=LINE,
            annotation_position="bottom left",
            row=row,
            col=1,
        )
    few = {"dtick": 1} if last.number < FEW else {}
    bounds = [-0.02 * last.number - 0.5, 1.02 * last.number + 0.5]
    figure.update_xaxes(**AXIS, **few, range=bounds)
    figure.update_yaxes(**AXIS)
    figure.update_yaxes(title_text=name, rangemode="tozero", row=row, col=1)
    figure.update_xaxes(title_text="trial", row=row, col=1)


def _outcome(figure: go.Figure, word: str, points: Sequence[HistoryPoint], *, low: float) -> None:
    """One trace for measured trials of an outcome, one in the row below for those without.

    Trials with a gain below ``low`` are triangles at the edge; to hover says their gain.
    """
    colour, symbol = OUTCOMES.get(word, (QUIET, "circle"))
    measured = [point for point in points if point.gain is not None]
    failed = [point for point in points if point.gain is None]
    for row, group in ((1, measured), (2, failed)):
        if not group:
            continue
        widths = [_error(point, low) for point in group]
        slow = [point.gain is not None and point.gain < low for point in group]
        symbols = ["triangle-down" if edge else symbol for edge in slow]
        figure.add_scatter(
            x=[point.number for point in group],
            y=[_height(point, low) for point in group],
            name=shown(word),
            legendgroup=word,
            showlegend=row == 1 or not measured,
            mode="markers",
            marker={"color": colour, "symbol": symbols, "size": 7, "opacity": 0.8},
            error_y={"array": widths, "color": colour, "thickness": 0.8, "width": 0}
            if row == 1 and len(group) <= MANY
            else None,
            text=[_hover(point) for point in group],
            hovertemplate="%{text}<extra></extra>",
            row=row,
            col=1,
        )


def _height(point: HistoryPoint, low: float) -> float | str:
    return UNMEASURED if point.gain is None else max(point.gain, low)


def _error(point: HistoryPoint, low: float) -> float:
    if point.gain is None or point.gain < low:
        return 0.0
    return point.gain * (point.half_width or 0.0)


def _hover(point: HistoryPoint) -> str:
    width = "" if point.half_width is None else f" +-{percent(point.half_width)}"
    gain = "" if point.gain is None else f": {point.gain:.3f}x{width}"
    reason = f"<br>{shown(point.reason)}" if point.reason else ""
    return f"trial {point.number}, {shown(point.word)}{gain}{reason}<br>{route_lines(point.route)}"


def _gain_axis(figure: go.Figure, history: History) -> None:
    low, high = history.gain_range
    room = 0.06 * (high - low)
    figure.update_yaxes(title_text="gain", range=[low - room, high + room], row=1, col=1)
    figure.add_hline(1.0, line_color=QUIET, line_width=1, row=1, col=1)
    figure.add_hline(
        history.min_gain,
        line_dash="dash",
        line_color=LINE,
        # In the legend: a label on the line would lie on the last trials.
        showlegend=True,
        name="smallest gain that ships",
        row=1,
        col=1,
    )
    if history.slower:
        figure.add_annotation(
            text=f"\N{BLACK DOWN-POINTING TRIANGLE} {slower_words(history)}",
            x=0,
            xref="x domain",
            y=low,
            yanchor="bottom",
            yshift=8,
            showarrow=False,
            row=1,
            col=1,
        )


def slower_words(history: History) -> str:
    """How many trials lie below the picture, and that they are at its edge."""
    count, (low, _) = len(history.slower), history.gain_range
    if count == 1:
        return f"1 trial, at the edge, is slower than {low:.2f}x"
    return f"{count} trials, at the edge, are slower than {low:.2f}x"
