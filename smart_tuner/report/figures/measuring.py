"""Pictures of measuring: finalists block by block, the machine, where the time went."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plotly.subplots import make_subplots

from smart_tuner.report.analysis.confirmation import PHASES
from smart_tuner.report.figures.style import (
    AXIS,
    FEW,
    GOOD,
    LINE,
    PLAIN,
    QUIET,
    new_figure,
    route_lines,
    shown,
    time_unit,
)
from smart_tuner.report.words import duration

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from smart_tuner.report.analysis.conditions import MachineState
    from smart_tuner.report.analysis.confirmation import Confirmation, FreshGain
    from smart_tuner.report.analysis.phases import PhaseTimes

CROWDED = 20
"""Builds beyond which their names and marks are smaller."""

PHASE_COLOURS = {
    "finalist": PLAIN,
    "reset": QUIET,
    "report": GOOD,
    "sustained": "#8e6ae0",
    "bare default": "#0e9aa7",
}


def confirmation_figure(confirmation: Confirmation) -> go.Figure:
    """Every pair of blocks of every fresh build, with the median of each build."""
    builds = [build for build in confirmation.builds if build.gain is not None]
    figure = new_figure(x="", y="gain over a fresh baseline", height=440)
    crowded = len(builds) > CROWDED
    size = 8 if crowded else 22
    for phase in dict.fromkeys(build.phase for build in builds):
        group = [build for build in builds if build.phase == phase]
        colour = PHASE_COLOURS.get(phase, PLAIN)
        figure.add_scatter(
            x=[build.label for build in group for _ in build.blocks],
            y=[gain for build in group for gain in build.blocks],
            name=phase,
            legendgroup=phase,
            showlegend=False,
            mode="markers",
            marker={"color": colour, "size": 5, "opacity": 0.45},
            hovertemplate="%{x}: one pair of blocks %{y:.4f}x<extra></extra>",
        )
        figure.add_scatter(
            x=[build.label for build in group],
            y=[build.gain for build in group],
            name=PHASES.get(phase, phase),
            legendgroup=phase,
            mode="markers",
            marker={"color": colour, "symbol": "line-ew-open", "size": size, "line_width": 3},
            text=[_build_hover(build) for build in group],
            hovertemplate="%{text}<extra></extra>",
        )
    order = [build.label for build in builds]
    figure.update_xaxes(
        categoryorder="array",
        categoryarray=order,
        tickangle=-45,
        tickfont_size=9 if crowded else 12,
    )
    figure.add_hline(1.0, line_color=QUIET, line_width=1)
    figure.add_hline(
        confirmation.min_gain,
        line_dash="dash",
        line_color=LINE,
        # In the legend: a label on the line would lie on the blocks of the last builds.
        showlegend=True,
        name="smallest gain that ships",
    )
    return figure


def _build_hover(build: FreshGain) -> str:
    gain = 1.0 if build.gain is None else build.gain
    return (
        f"{shown(build.label)}: {gain:.4f}x, {shown(build.outcome)}<br>{route_lines(build.route)}"
    )


def machine_figure(machine: MachineState) -> go.Figure:
    """The baseline's own latency, clocks, temperature and power over the trials, a row each."""
    series = (*((machine.baseline,) if machine.baseline else ()), *machine.series)
    figure = make_subplots(
        rows=len(series),
        cols=1,
        shared_xaxes=True,
        vertical_spacing=0.25 / len(series),
        subplot_titles=[one.label for one in series],
        figure=new_figure(height=80 + 150 * len(series), legend=False),
    )
    for row, one in enumerate(series, 1):
        figure.add_scatter(
            x=list(one.trials),
            y=list(one.values),
            mode="lines+markers",
            marker={"size": 4, "color": PLAIN},
            line={"width": 1, "color": PLAIN},
            hovertemplate=f"trial %{{x}}: %{{y:.4g}}<extra>{shown(one.label)}</extra>",
            row=row,
            col=1,
        )
    few = {"dtick": 1} if max(series[0].trials) < FEW else {}
    figure.update_xaxes(**AXIS, **few)
    figure.update_yaxes(**AXIS)
    figure.update_annotations(font_size=12, xanchor="left", x=0)
    figure.update_xaxes(title_text="trial", row=len(series), col=1)
    return figure


def phases_figure(phases: PhaseTimes) -> go.Figure:
    """Time by phase."""
    shown_phases = phases.phases[::-1]
    unit, name = time_unit(max(phase.seconds for phase in shown_phases))
    figure = new_figure(x=name, height=90 + 34 * len(shown_phases), legend=False)
    figure.add_bar(
        x=[phase.seconds / unit for phase in shown_phases],
        y=[phase.name for phase in shown_phases],
        orientation="h",
        marker={"color": PLAIN, "opacity": 0.85},
        text=[f"{duration(phase.seconds)}, {100 * phase.share:.0f} %" for phase in shown_phases],
        textposition="auto",
        hovertemplate="%{y}: %{text}<extra></extra>",
    )
    return figure
