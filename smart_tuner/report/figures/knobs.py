"""Pictures of knobs: what their values do, and which of them break."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from smart_tuner.knobs.text import many
from smart_tuner.report.analysis.effects import Finding
from smart_tuner.report.figures.style import BAD, GOOD, PLAIN, QUIET, label, new_figure, shown
from smart_tuner.report.words import latency_percent

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from smart_tuner.priors.found import SaidAndFound
    from smart_tuner.report.analysis.effects import Effects, ValueEffect
    from smart_tuner.report.analysis.failures import FailureMap, ValueFailures
    from smart_tuner.report.analysis.prior import PriorReview

MOST = 30
"""Values that are drawn: those that do most; the rest is counted in words."""

ROW = 22
LATENCY = "change of latency, % (left of 0: faster)"
COLOURS = {Finding.PAYS: GOOD, Finding.COSTS: BAD, Finding.NO_EFFECT: QUIET}
UNCLEAR_COLOUR = "#c27803"
SCALE = ((0.0, "rgba(139,149,165,0.08)"), (0.001, "rgba(214,69,69,0.25)"), (1.0, "#d64545"))


def drawn_effects(effects: Effects) -> tuple[ValueEffect, ...]:
    """The values that are drawn, by effect: what is sure, then what may pay, then what may cost."""
    known = [value for value in effects.values if value.effect is not None]
    sure = [value for value in known if value.finding in (Finding.PAYS, Finding.COSTS)]
    chosen = sorted(sure, key=lambda value: -abs(value.effect or 0.0))[:MOST]
    rest = [value for value in known if value not in set(chosen)]
    room = MOST - len(chosen)
    slow = min(room // 3, max(0, len(rest) - (room - room // 3)))
    chosen += rest[: room - slow] + rest[len(rest) - slow :]
    return tuple(sorted(chosen, key=lambda value: value.effect or 0.0))


def effects_figure(effects: Effects) -> go.Figure:
    """Effect of each value in percent of the latency, its interval, and the noise floor as a band."""
    drawn = drawn_effects(effects)[::-1]
    figure = new_figure(x=LATENCY, height=110 + ROW * len(drawn), legend=True)
    places = {value: place for place, value in enumerate(drawn)}
    for finding in Finding:
        group = [value for value in drawn if value.finding is finding]
        if not group:
            continue
        colour = COLOURS.get(finding, UNCLEAR_COLOUR)
        shares = [latency_percent(value.effect or 0.0) for value in group]
        bounds = [value.shares or (0.0, 0.0) for value in group]
        figure.add_scatter(
            x=shares,
            y=[places[value] for value in group],
            name=finding.value,
            mode="markers",
            marker={"color": colour, "size": 8},
            error_x={
                "type": "data",
                "symmetric": False,
                "array": [b[1] - share for b, share in zip(bounds, shares, strict=True)],
                "arrayminus": [share - b[0] for b, share in zip(bounds, shares, strict=True)],
                "color": colour,
                "thickness": 1.5,
                "width": 3,
            },
            text=[_effect_hover(value) for value in group],
            hovertemplate="%{text}<extra></extra>",
        )
    figure.update_yaxes(
        tickvals=list(range(len(drawn))),
        ticktext=[label(value.knob, value.value) for value in drawn],
        range=[-0.7, len(drawn) - 0.3],
    )
    figure.add_vline(0, line_color=QUIET, line_width=1)
    if effects.floor:
        half = 100 * math.expm1(effects.floor)
        figure.add_vrect(-half, half, fillcolor=QUIET, opacity=0.15, line_width=0)
    return figure


def _effect_hover(value: ValueEffect) -> str:
    low, high = value.shares or (0.0, 0.0)
    share = latency_percent(value.effect or 0.0)
    return (
        f"{shown(value.knob)}={shown(value.value)}: {value.finding.value}<br>"
        f"latency {share:+.1f} %, 95 % interval {low:+.1f} to {high:+.1f}, {many(value.measured, 'trial')}"
    )


def drawn_rows(prior: PriorReview) -> tuple[SaidAndFound, ...]:
    """The values that are drawn: those that were tried, what was promised most first."""
    return tuple(row for row in prior.rows if row.found_effect is not None)[:MOST]


def prior_figure(prior: PriorReview) -> go.Figure:
    """Expected effect in percent of the latency, as the prior had it and as it was found.

    Expected means: the effect if the value matters, times the probability that it does.
    """
    drawn = drawn_rows(prior)[::-1]
    figure = new_figure(x=LATENCY, height=110 + ROW * len(drawn))
    said = [row.said_effect * row.said_active for row in drawn]
    found = [(row.found_effect or 0.0) * (row.found_active or 0.0) for row in drawn]
    for name, symbol, effects in (
        ("the prior said", "circle-open", said),
        ("this study found", "circle", found),
    ):
        figure.add_scatter(
            x=[latency_percent(effect) for effect in effects],
            y=list(range(len(drawn))),
            name=name,
            mode="markers",
            marker={"color": PLAIN, "symbol": symbol, "size": 9, "line_width": 2},
            text=[f"{shown(row.knob)}={shown(row.value)}: {row.verdict}" for row in drawn],
            hovertemplate=f"%{{text}}<br>{name} %{{x:.2f}} %<extra></extra>",
        )
    figure.update_yaxes(
        tickvals=list(range(len(drawn))),
        ticktext=[label(row.knob, row.value) for row in drawn],
        range=[-0.7, len(drawn) - 0.3],
    )
    figure.add_vline(0, line_color=QUIET, line_width=1)
    return figure


def drawn_failures(failures: FailureMap) -> tuple[ValueFailures, ...]:
    """The values that are drawn: the most suspect ones."""
    return failures.values[:MOST]


def failures_figure(failures: FailureMap) -> go.Figure:
    """Share of the routes with each value that cannot ship, by how they ended."""
    drawn = drawn_failures(failures)[::-1]
    words = failures.words
    figure = new_figure(height=120 + ROW * len(drawn), legend=False)
    shares = [[100 * v.counts.get(word, 0) / v.tried for word in words] for v in drawn]
    counts = [[f"{v.counts.get(word, 0)} of {v.tried}" for word in words] for v in drawn]
    hover = [
        [
            f"{shown(v.knob)}={shown(v.value)}: {n} routes {word}"
            for n, word in zip(row, words, strict=True)
        ]
        for v, row in zip(drawn, counts, strict=True)
    ]
    figure.add_heatmap(
        z=shares,
        x=[shown(word) for word in words],
        y=list(range(len(drawn))),
        zmin=0,
        zmax=100,
        colorscale=[list(stop) for stop in SCALE],
        text=[["" if cell.startswith("0 ") else cell for cell in row] for row in counts],
        texttemplate="%{text}",
        customdata=hover,
        hovertemplate="%{customdata}<extra></extra>",
        xgap=2,
        ygap=2,
        showscale=False,
    )
    figure.update_yaxes(
        tickvals=list(range(len(drawn))),
        ticktext=[f"{_blame(value)}{label(value.knob, value.value)}" for value in drawn],
        showgrid=False,
    )
    figure.update_xaxes(side="top", showgrid=False)
    return figure


def _blame(value: ValueFailures) -> str:
    return "\N{BLACK RIGHT-POINTING SMALL TRIANGLE} " if value.risk >= 0.5 else ""
