"""The terminal: live where there is one, plain lines in a log file."""

from __future__ import annotations

import contextlib
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from smart_tuner.report.words import outcome_word, percent, shortened
from smart_tuner.study.events import (
    Note,
    PhaseStarted,
    RouteMeasured,
    TrialFinished,
    TrialStarted,
    silent,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from smart_tuner.study.events import Event, Listener

LAST_ROUTES = 8


def describe(event: Event) -> str:
    """One plain line for an event; empty for what a log need not have."""
    if isinstance(event, Note):
        return f"note: {event.text}"
    if isinstance(event, PhaseStarted):
        return f"[{event.phase}] {event.text}"
    if isinstance(event, TrialFinished):
        return _trial_line(event)
    if isinstance(event, RouteMeasured):
        gain = "failed" if event.gain is None else f"{event.gain:.3f}x"
        spread = "" if event.half_width is None else f" +-{percent(event.half_width)}"
        reason = f"  {event.message}" if event.message else ""
        return f"  {event.phase}: {gain}{spread}  {event.route or '(default)'}{reason}"
    return ""


def _trial_line(event: TrialFinished) -> str:
    figure = "" if event.gain is None else f" {event.gain:.3f}x"
    clock = f"{event.spent_seconds:.0f}/{event.budget_seconds:.0f} s"
    reason = f"  {event.message}" if event.message else ""
    return (
        f"trial {event.number:>3} {outcome_word(event)}{figure}"
        f"  best {event.incumbent_gain:.3f}x  {clock}  {event.route or '(default)'}{reason}"
    )


@dataclass(slots=True)
class LiveDisplay:
    """A screen that is drawn anew with each event.

    Attributes:
        title: What is tuned.
        console: Where to draw.
    """

    title: str
    console: Console
    phase: str = "starting"
    trying: str = ""
    last: TrialFinished | None = None
    counts: Counter[str] = field(default_factory=Counter)
    rows: deque[tuple[str, str, str, str]] = field(
        default_factory=lambda: deque(maxlen=LAST_ROUTES)
    )
    _live: Live | None = None
    _started: float = field(default_factory=time.monotonic)

    def __call__(self, event: Event) -> None:
        """Take an event in and draw."""
        if isinstance(event, Note):
            self.console.print(Text(f"note: {event.text}", style="yellow"))
        elif isinstance(event, PhaseStarted):
            self.phase, self.trying = event.text, ""
        elif isinstance(event, TrialStarted):
            self.trying = f"trial {event.number}, {event.reason}: {event.route or '(default)'}"
        elif isinstance(event, TrialFinished):
            self._finished(event)
        else:
            gain = "-" if event.gain is None else f"{event.gain:.3f}x"
            self.rows.append((event.phase, gain, event.message, str(event.route) or "(default)"))
        if self._live is not None:
            self._live.update(self.render())

    def _finished(self, event: TrialFinished) -> None:
        self.last = event
        word = outcome_word(event)
        self.counts[word] += 1
        gain = "-" if event.gain is None else f"{event.gain:.3f}x"
        self.rows.append((str(event.number), gain, word, str(event.route) or "(default)"))

    def render(self) -> Group:
        """The screen as it is now."""
        parts: list[Text | Table | ProgressBar] = [
            Text(self.title, style="bold", overflow="ellipsis", no_wrap=True),
            Text(self.phase, style="cyan", overflow="ellipsis", no_wrap=True),
        ]
        if self.last is not None:
            spent, total = self.last.spent_seconds, self.last.budget_seconds
            counts = ", ".join(f"{count} {word}" for word, count in self.counts.most_common())
            left = max(0.0, total - spent)
            best = Text.assemble(
                "best so far ", (f"{self.last.incumbent_gain:.3f}x", "bold green"), f"  {counts}"
            )
            parts += [
                best,
                ProgressBar(total=total, completed=min(spent, total), width=40),
                Text(f"{left:.0f} s left of {total:.0f} s", style="dim"),
            ]
        if self.rows:
            parts.append(self._table())
        if self.trying:
            parts.append(Text(self.trying, style="dim", overflow="ellipsis", no_wrap=True))
        return Group(*parts)

    def _table(self) -> Table:
        table = Table(box=None, pad_edge=False, expand=False)
        table.add_column("trial", justify="right", no_wrap=True)
        table.add_column("gain", justify="right", no_wrap=True)
        table.add_column("outcome", no_wrap=True)
        table.add_column("route", no_wrap=True, overflow="ellipsis")
        room = max(20, self.console.width - 36)
        for number, gain, word, route in self.rows:
            table.add_row(number, gain, word, shortened(route, room))
        return table

    @contextlib.contextmanager
    def running(self) -> Iterator[LiveDisplay]:
        """Draw until the block ends; the last screen stays."""
        with Live(self.render(), console=self.console, refresh_per_second=4) as live:
            self._live = live
            try:
                yield self
            finally:
                self._live = None


@contextlib.contextmanager
def display(title: str, console: Console, *, quiet: bool = False) -> Iterator[Listener]:
    """A listener for a study: live on a terminal, plain lines elsewhere, nothing if quiet."""
    if quiet:
        yield silent
    elif console.is_terminal:
        with LiveDisplay(title, console).running() as live:
            yield live
    else:
        console.print(title, highlight=False, markup=False, soft_wrap=True)

        def plain(event: Event) -> None:
            line = describe(event)
            if line:
                console.print(line, highlight=False, markup=False, soft_wrap=True)

        yield plain
