"""A study's pictures by name: the figure, or the sentence that says why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from smart_tuner.report.analysis.confirmation import confirmation_of
from smart_tuner.report.analysis.effects import effects_of
from smart_tuner.report.analysis.failures import failures_of
from smart_tuner.report.analysis.history import history_of
from smart_tuner.report.analysis.phases import phases_of
from smart_tuner.report.analysis.tradeoff import sweep_of, tradeoff_of
from smart_tuner.report.figures.accuracy import sweep_figure, tradeoff_figure
from smart_tuner.report.figures.knobs import (
    drawn_effects,
    drawn_failures,
    effects_figure,
    failures_figure,
)
from smart_tuner.report.figures.measuring import confirmation_figure, phases_figure
from smart_tuner.report.figures.search import history_figure
from smart_tuner.report.figures.style import new_figure
from smart_tuner.report.knob_sentences import effects_words, failures_words
from smart_tuner.report.sentences import (
    confirmation_words,
    history_words,
    phases_words,
    sweep_words,
    tradeoff_words,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import plotly.graph_objects as go

    from smart_tuner.report.reading import StudyView


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure with its title.

    Attributes:
        title: What it shows.
        figure: The figure; ``None`` where there is no data.
        words: The same in a sentence, or why there is none.
    """

    title: str
    figure: go.Figure | None
    words: str

    def shown(self) -> go.Figure:
        """The figure with its title; without data, an empty one that says why."""
        figure = self.figure or new_figure(height=200, legend=False)
        figure.update_layout(title={"text": self.title}, margin={"t": 72})
        if self.figure is None:
            figure.update_layout(xaxis={"visible": False}, yaxis={"visible": False})
            figure.add_annotation(text=self.words, showarrow=False, x=0.5, y=0.5)
        return figure


def _history(view: StudyView) -> Picture:
    data = history_of(view)
    figure = history_figure(data) if data.points else None
    return Picture("Gain of each trial, with the best so far", figure, history_words(data))


def _tradeoff(view: StudyView) -> Picture:
    data = tradeoff_of(view)
    figure = tradeoff_figure(data) if data.points else None
    return Picture("Gain against accuracy loss", figure, tradeoff_words(data))


def _sweep(view: StudyView) -> Picture:
    data = tradeoff_of(view)
    steps = sweep_of(data)
    figure = sweep_figure(steps, data) if steps else None
    title = "Epsilon sweep: routes within, and the fastest"
    return Picture(title, figure, sweep_words(steps))


def _effects(view: StudyView) -> Picture:
    data = effects_of(view)
    figure = effects_figure(data) if drawn_effects(data) else None
    title = "Effect of knob values, with 95 % intervals"
    return Picture(title, figure, " ".join(effects_words(data, failures_of(view))))


def _failures(view: StudyView) -> Picture:
    data = failures_of(view)
    figure = failures_figure(data) if drawn_failures(data) else None
    return Picture("What breaks, by knob value", figure, " ".join(failures_words(data)))


def _confirmation(view: StudyView) -> Picture:
    data = confirmation_of(view)
    figure = confirmation_figure(data) if data.builds else None
    title = "Paired gains: fresh builds, block by block"
    return Picture(title, figure, confirmation_words(data))


def _phases(view: StudyView) -> Picture:
    data = phases_of(view)
    figure = phases_figure(data) if data.phases else None
    return Picture("Time by phase", figure, phases_words(data))


PICTURES: Mapping[str, Callable[[StudyView], Picture]] = {
    "history": _history,
    "confirmation": _confirmation,
    "effects": _effects,
    "tradeoff": _tradeoff,
    "sweep": _sweep,
    "failures": _failures,
    "phases": _phases,
}
"""What draws a picture of a study, by its name."""
