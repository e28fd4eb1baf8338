"""Pictures of a comparison, as one page."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

import plotly.graph_objects as go
import plotly.io
import plotly.offline

from smart_tuner.bench.score import POOLED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from smart_tuner.bench.compare import Difference
    from smart_tuner.bench.score import Curve
    from smart_tuner.bench.summary import Summary

HEIGHT = 420


def plots_page(summary: Summary, title: str, *, whole: bool = True) -> str:
    """One HTML page with a picture a group, and one of the pooled differences.

    Args:
        summary: What was found.
        title: Of the page.
        whole: The page holds all that it needs, 5 MB of plotly's JavaScript; else a browser
            loads that from plotly's server.
    """
    groups = list(dict.fromkeys(curve.group for curve in summary.curves))
    if len(groups) == 2:
        groups.remove(POOLED)  # one generator alone: the same curves twice
    figures = [
        gain_figure([curve for curve in summary.curves if curve.group == group], group)
        for group in groups
    ]
    pooled = [item for item in summary.differences if item.group == POOLED]
    if pooled:
        figures.append(difference_figure(pooled))
    return "\n".join(_page(title, figures, _library() if whole else _link()))


def gain_figure(curves: Sequence[Curve], group: str) -> go.Figure:
    """Mean gain fraction against trials, one line a sampler, the best at the end first."""
    figure = go.Figure()
    for curve in sorted(curves, key=lambda curve: -curve.gain[-1]):
        trials = list(range(1, len(curve.gain) + 1))
        figure.add_scatter(x=trials, y=list(curve.gain), name=curve.sampler, mode="lines")
    name = "all generators" if group == POOLED else group
    figure.update_layout(
        title=f"{name}: share of the attainable gain",
        xaxis_title="trials",
        yaxis_title="share of the attainable gain",
        height=HEIGHT,
        template="plotly_white",
    )
    return figure


def difference_figure(differences: Sequence[Difference]) -> go.Figure:
    """Differences from the rival with their corrected intervals, one row each."""
    figure = go.Figure()
    names = [f"{item.sampler} @{item.trials}" for item in differences]
    figure.add_scatter(
        x=[item.mean for item in differences],
        y=names,
        mode="markers",
        error_x={
            "type": "data",
            "symmetric": False,
            "array": [item.high - item.mean for item in differences],
            "arrayminus": [item.mean - item.low for item in differences],
        },
    )
    figure.add_vline(x=0, line_dash="dot")
    figure.update_layout(
        title=f"gain fraction minus that of {differences[0].rival}, 95 % after Holm",
        height=160 + 24 * len(names),
        template="plotly_white",
    )
    return figure


def _page(title: str, figures: Sequence[go.Figure], library: str) -> Iterator[str]:
    yield "<!DOCTYPE html>"
    yield f'<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
    yield f"{library}</head>"
    yield f"<body><h1>{html.escape(title)}</h1>"
    for figure in figures:
        yield plotly.io.to_html(figure, full_html=False, include_plotlyjs=False)
    yield "</body></html>"


def _library() -> str:
    return f"<script>{plotly.offline.get_plotlyjs()}</script>"


def _link() -> str:
    version = plotly.offline.get_plotlyjs_version()
    return f'<script src="https://cdn.plot.ly/plotly-{version}.min.js" charset="utf-8"></script>'
