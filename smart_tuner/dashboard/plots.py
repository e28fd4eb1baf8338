"""Figures of our own beside the dashboard's: what is proven, what pays, what epsilon costs."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from smart_tuner.report.pictures import PICTURES
from smart_tuner.report.reading import read_study

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import optuna

    from smart_tuner.report.reading import StudyView

PREFIX = "dashboard:plot_data:"
SHOWN = ("history", "confirmation", "effects", "sweep", "failures")
SHARE = 0.05
"""Most of one processor that drawing a running study may take: its measurements go on."""

HEIGHT, TOP, BOTTOM = 440, 44, 96
"""Of a figure, in pixels: what the dashboard has room for, with the legend below."""


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

    def attributes(self, state: object, opened: optuna.Study | None) -> dict[str, str]:
        """System attributes that hold the figures.

        Args:
            state: Whatever changes when the figures would.
            opened: The study, where it is open already: reading a large one takes seconds.
        """
        self._waiting = state != self._seen
        if self._waiting and time.monotonic() >= self._due:
            began = time.monotonic()
            self._kept = dict(_stored(read_study(self.root, opened)))
            self._seen, self._waiting = state, False
            now = time.monotonic()
            self._due = now + (now - began) / SHARE
        return self._kept


def _stored(view: StudyView) -> Iterator[tuple[str, str]]:
    for name in SHOWN:
        picture = PICTURES[name](view)
        if picture.figure is None:
            continue
        picture.figure.update_layout(
            title={"text": picture.title, "x": 0.5, "y": 0.98, "yanchor": "top", "font_size": 15},
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
        yield f"{PREFIX}{name}:0", str(picture.figure.to_json())
