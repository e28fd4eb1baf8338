"""Pictures of accuracy: what speed costs of it, and another epsilon."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from plotly.subplots import make_subplots

from smart_tuner.report.analysis.tradeoff import EXACT, LARGEST_RATIO, winners_of
from smart_tuner.report.figures.style import (
    AXIS,
    GOOD,
    LINE,
    OUTCOMES,
    PLAIN,
    new_figure,
    route_lines,
    shown,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import plotly.graph_objects as go

    from smart_tuner.report.analysis.tradeoff import SweepStep, Tradeoff, TradeoffPoint


def tradeoff_figure(tradeoff: Tradeoff) -> go.Figure:
    """Gain against accuracy loss, the epsilon line, and the Pareto set."""
    figure = new_figure(x=_loss_title(tradeoff), y="gain")
    eligible = [point for point in tradeoff.points if point.feasible]
    others = [point for point in tradeoff.points if not point.feasible]
    for name, group, word in (
        ("within epsilon and limits", eligible, "ok"),
        ("over epsilon or a limit", others, "over epsilon"),
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
        name="best trades: nothing is faster at no larger loss",
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
        x=0,
        xshift=-4,
        y=1,
        yref="paper",
        yanchor="top",
        text="epsilon",
        showarrow=False,
        xanchor="right",
        font_color=LINE,
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
    loss = EXACT if point.is_exact else f"loss {point.ratio:.3g} times epsilon"
    words = "within epsilon" if point.feasible else "over epsilon or a limit"
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
        EXACT if power <= -limit else "10⁶ or NaN" if power >= limit else f"{10.0**power:g}"
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
        (2, "routes within epsilon", PLAIN, [step.eligible for step in steps]),
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
        name="another trial is the fastest",
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
    figure.update_yaxes(title_text="routes", rangemode="tozero", row=2, col=1)
    unit = f" ({tradeoff.metric}; 1 is {tradeoff.epsilon:g})" if tradeoff.one_epsilon else ""
    figure.update_xaxes(title_text=shown(f"epsilon / this study's{unit}"), row=2)
    _own_epsilon(figure)
    return figure


def _own_epsilon(figure: go.Figure) -> None:
    """The line of this study's epsilon through both rows, named once."""
    for row in (1, 2):
        figure.add_vline(1.0, line_dash="dash", line_color=LINE, row=row, col=1)
    figure.add_annotation(
        text="this study's epsilon",
        x=0,
        xshift=-4,
        xanchor="right",
        y=1,
        yref="y domain",
        yanchor="top",
        showarrow=False,
        font_color=LINE,
        row=1,
        col=1,
    )
