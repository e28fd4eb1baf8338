"""Pictures of the search: its history, what it traded, another epsilon."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from plotly.subplots import make_subplots

from smart_tuner.report.analysis.tradeoff import LARGEST_RATIO, winners_of
from smart_tuner.report.figures.style import (
    AXIS,
    FEW,
    GOOD,
    LINE,
    OUTCOMES,
    PLAIN,
    QUIET,
    new_figure,
    route_lines,
    shown,
    time_unit,
)
from smart_tuner.report.words import percent

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import plotly.graph_objects as go

    from smart_tuner.report.analysis.history import History, HistoryPoint
    from smart_tuner.report.analysis.tradeoff import SweepStep, Tradeoff, TradeoffPoint

FAILED_ROW = "failed"
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
        _outcome(figure, word, [point for point in points if point.word == word])
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
        rows = {"categoryorder": "array", "categoryarray": [FAILED_ROW]}
        figure.update_yaxes(**rows, title_text="failed", showticklabels=False, row=2, col=1)
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


def _outcome(figure: go.Figure, word: str, points: Sequence[HistoryPoint]) -> None:
    """One trace for measured trials of an outcome, one in the row below for those without."""
    colour, symbol = OUTCOMES.get(word, (QUIET, "circle"))
    measured = [point for point in points if point.gain is not None]
    failed = [point for point in points if point.gain is None]
    for row, group in ((1, measured), (2, failed)):
        if not group:
            continue
        widths = [_error(point) for point in group]
        figure.add_scatter(
            x=[point.number for point in group],
            y=[point.gain if row == 1 else FAILED_ROW for point in group],
            name=shown(word),
            legendgroup=word,
            showlegend=row == 1 or not measured,
            mode="markers",
            marker={"color": colour, "symbol": symbol, "size": 7, "opacity": 0.8},
            error_y={"array": widths, "color": colour, "thickness": 0.8, "width": 0}
            if row == 1 and len(group) <= MANY
            else None,
            text=[_hover(point) for point in group],
            hovertemplate="%{text}<extra></extra>",
            row=row,
            col=1,
        )


def _error(point: HistoryPoint) -> float:
    return 0.0 if point.gain is None else point.gain * (point.half_width or 0.0)


def _hover(point: HistoryPoint) -> str:
    width = "" if point.half_width is None else f" +-{percent(point.half_width)}"
    gain = "" if point.gain is None else f": {point.gain:.3f}x{width}"
    reason = f"<br>{shown(point.reason)}" if point.reason else ""
    return f"trial {point.number}, {shown(point.word)}{gain}{reason}<br>{route_lines(point.route)}"


def _gain_axis(figure: go.Figure, history: History) -> None:
    gains = [point.gain for point in history.points if point.gain is not None] or [1.0]
    low, high = min(*gains, 0.98), max(*gains, history.min_gain, 1.02)
    # One slow route must not flatten all others: what is below half the span is cut.
    low = max(low, 1 - 2 * (high - 1), 0.0)
    room = 0.06 * (high - low)
    figure.update_yaxes(title_text="gain", range=[low - room, high + room], row=1, col=1)
    figure.add_hline(1.0, line_color=QUIET, line_width=1, row=1, col=1)
    figure.add_hline(
        history.min_gain,
        line_dash="dash",
        line_color=LINE,
        annotation_text="smallest gain that ships",
        annotation_font_color=LINE,
        annotation_position="bottom right",
        row=1,
        col=1,
    )


def tradeoff_figure(tradeoff: Tradeoff) -> go.Figure:
    """Gain against accuracy loss, the epsilon line, and the Pareto set."""
    figure = new_figure(x=_loss_title(tradeoff), y="gain")
    eligible = [point for point in tradeoff.points if point.feasible]
    others = [point for point in tradeoff.points if not point.feasible]
    for name, group, word in (
        ("within epsilon and limits", eligible, "ok"),
        ("infeasible: over epsilon or a limit", others, "over epsilon"),
    ):
        colour, symbol = OUTCOMES[word]
        if group:
            figure.add_scatter(
                **_points(group),
                name=name,
                mode="markers",
                marker={"color": colour, "symbol": symbol, "size": 8, "opacity": 0.75},
            )
    front = tradeoff.front
    figure.add_scatter(
        x=[point.ratio for point in front],
        y=[point.gain for point in front],
        name="Pareto set: nothing is faster and more exact",
        mode="lines",
        line={"shape": "hv", "color": GOOD, "width": 2},
        hoverinfo="skip",
    )
    ratios = [point.ratio for point in tradeoff.points] or [1.0]
    low, high = min(*ratios, 0.1), max(*ratios, 10.0)
    bounds = [math.log10(low) - 0.3, math.log10(high) + 0.3]
    figure.update_xaxes(type="log", range=bounds, **_ratio_ticks(bounds))
    # plotly places shapes on a logarithmic axis by value, but their notes by exponent.
    figure.add_vline(1.0, line_dash="dash", line_color=LINE, line_width=1.5)
    figure.add_annotation(
        x=0, y=1, yref="paper", text="epsilon", showarrow=False, xanchor="right", font_color=LINE
    )
    return figure


def _points(points: Iterable[TradeoffPoint]) -> dict[str, object]:
    group = list(points)
    return {
        "x": [point.ratio for point in group],
        "y": [point.gain for point in group],
        "text": [_trade_hover(point) for point in group],
        "hovertemplate": "%{text}<extra></extra>",
    }


def _trade_hover(point: TradeoffPoint) -> str:
    loss = "exact, or nearly" if point.is_exact else f"loss {point.ratio:.3g} times epsilon"
    words = "feasible" if point.feasible else "infeasible"
    return (
        f"trial {point.number}, {words}: {point.gain:.3f}x, {loss}<br>{route_lines(point.route)}"
    )


def _loss_title(tradeoff: Tradeoff) -> str:
    unit = f" ({tradeoff.metric}; 1 is {tradeoff.epsilon:g})" if tradeoff.one_epsilon else ""
    return shown(f"worst loss / epsilon{unit}")


def _ratio_ticks(bounds: Sequence[float]) -> dict[str, object]:
    """Powers of ten as ``0.01``, ``1``, ``100``; the ends, beyond which nothing is told apart."""
    low, high = math.floor(bounds[0]), math.ceil(bounds[1])
    step = max(1, (high - low) // 6)
    powers = [power for power in range(low, high + 1) if power % step == 0]
    limit = round(math.log10(LARGEST_RATIO))
    texts = [
        "exact" if power <= -limit else "10⁶ or NaN" if power >= limit else f"{10.0**power:g}"
        for power in powers
    ]
    return {"tickvals": [10.0**power for power in powers], "ticktext": texts}


def sweep_figure(steps: Sequence[SweepStep], tradeoff: Tradeoff) -> go.Figure:
    """How many tried routes are eligible at each epsilon, and the gain of the fastest of them."""
    figure = make_subplots(
        rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.06, figure=new_figure(height=460)
    )
    ends = [*(step.ratio for step in steps), max(10.0, steps[-1].ratio * 10)]
    for row, name, colour, values in (
        (1, "gain of the fastest", GOOD, [step.gain for step in steps]),
        (2, "eligible routes", PLAIN, [step.eligible for step in steps]),
    ):
        figure.add_scatter(
            x=ends,
            y=[*values, values[-1]],
            name=name,
            mode="lines",
            line={"shape": "hv", "color": colour, "width": 2},
            hovertemplate=f"epsilon x %{{x:.3g}}: {name} %{{y:.4g}}<extra></extra>",
            row=row,
            col=1,
        )
    changes = winners_of(steps)
    figure.add_scatter(
        x=[step.ratio for step in changes],
        y=[step.gain for step in changes],
        name="another route wins",
        mode="markers",
        marker={"color": GOOD, "size": 9, "symbol": "circle"},
        text=[
            f"from epsilon x {step.ratio:.3g}: trial {step.number}, {step.gain:.3f}x<br>"
            f"{route_lines(step.route)}"
            for step in changes
        ],
        hovertemplate="%{text}<extra></extra>",
        row=1,
        col=1,
    )
    bounds = [math.log10(min(ends[0], 0.1)) - 0.3, math.log10(ends[-1])]
    figure.update_xaxes(**AXIS, type="log", range=bounds, **_ratio_ticks(bounds))
    figure.update_yaxes(**AXIS)
    figure.update_yaxes(title_text="gain", row=1, col=1)
    figure.update_yaxes(title_text="eligible", rangemode="tozero", row=2, col=1)
    unit = f" ({tradeoff.metric}; 1 is {tradeoff.epsilon:g})" if tradeoff.one_epsilon else ""
    figure.update_xaxes(title_text=shown(f"epsilon / this study's{unit}"), row=2)
    for row in (1, 2):
        figure.add_vline(1.0, line_dash="dash", line_color=LINE, row=row, col=1)
    return figure
