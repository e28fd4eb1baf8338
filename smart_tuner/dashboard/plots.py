"""Figures of our own beside the dashboard's: what is proven, what pays, what epsilon costs."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from smart_tuner.report.analysis.confirmation import confirmation_of
from smart_tuner.report.analysis.effects import effects_of
from smart_tuner.report.analysis.failures import failures_of
from smart_tuner.report.analysis.history import history_of
from smart_tuner.report.analysis.tradeoff import sweep_of, tradeoff_of
from smart_tuner.report.figures.knobs import effects_figure, failures_figure
from smart_tuner.report.figures.measuring import confirmation_figure
from smart_tuner.report.figures.search import history_figure, sweep_figure
from smart_tuner.report.reading import read_study

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import plotly.graph_objects as go

    from smart_tuner.report.reading import StudyView

PREFIX = "dashboard:plot_data:"
SHARE = 0.05
"""Most of one processor that drawing a running study may take: its measurements go on."""

HEIGHT, TOP, BOTTOM = 440, 44, 96
"""Of a figure, in pixels: what the dashboard has room for, with the legend below."""


def figures_of(view: StudyView) -> Iterator[tuple[str, go.Figure]]:
    """Title and figure of everything there is data for."""
    history = history_of(view)
    if history.points:
        yield "Gain of each trial, with the best so far", history_figure(history)
    confirmation = confirmation_of(view)
    if confirmation.builds:
        yield "Paired gains: fresh builds, block by block", confirmation_figure(confirmation)
    effects = effects_of(view)
    if effects.values:
        yield "Effect of knob values, with 95 % intervals", effects_figure(effects)
    tradeoff = tradeoff_of(view)
    if steps := sweep_of(tradeoff):
        yield "Epsilon sweep: what stays eligible, and who wins", sweep_figure(steps, tradeoff)
    failures = failures_of(view)
    if failures.values:
        yield "What breaks, by knob value", failures_figure(failures)


@dataclass(slots=True)
class Plots:
    """A study's figures as the dashboard stores them; drawn anew when there is something new.

    Attributes:
        root: The study folder.
    """

    root: Path
    _seen: object = None
    _due: float = -math.inf
    _waiting: bool = False
    _kept: dict[str, str] = field(default_factory=dict)

    @property
    def is_due(self) -> bool:
        """Whether something new waits to be drawn, and has waited long enough."""
        return self._waiting and time.monotonic() >= self._due

    def attributes(self, state: object) -> dict[str, str]:
        """System attributes that hold the figures.

        Args:
            state: Whatever changes when the figures would.
        """
        self._waiting = state != self._seen
        if self._waiting and time.monotonic() >= self._due:
            began = time.monotonic()
            self._kept = dict(_stored(read_study(self.root)))
            self._seen, self._waiting = state, False
            now = time.monotonic()
            self._due = now + (now - began) / SHARE
        return self._kept


def _stored(view: StudyView) -> Iterator[tuple[str, str]]:
    for place, (title, figure) in enumerate(figures_of(view)):
        figure.update_layout(
            title={"text": title, "x": 0.5, "y": 0.98, "yanchor": "top", "font": {"size": 15}},
            height=HEIGHT,
            margin={"t": TOP, "b": BOTTOM},
            legend={
                "orientation": "h",
                "x": 0.5,
                "xanchor": "center",
                "y": -0.2,
                "yanchor": "top",
            },
        )
        yield f"{PREFIX}figure-{place}:0", str(figure.to_json())
