"""The terminal: live where there is one, plain lines in a log file."""

from __future__ import annotations

import contextlib
import math
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from smart_tuner.report.words import clock, outcome_word, percent, shortened
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
WIDTHS = {"trial": 9, "gain": 7, "+-": 8, "outcome": 12}
"""Columns before the route, of fixed width so that the table does not jump."""

LEAST_ROUTE = 20
BAR = 40
STYLES = {"no effect": "dim", "ok": "", "over epsilon": "yellow", "over limit": "yellow"}
FAILED_STYLE = "red"


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
    figure = "" if event.gain is None else f"{event.gain:.3f}x"
    reason = f"  {event.message}" if event.message else ""
    return (
        f"trial {event.number:>3} {outcome_word(event):<12} {figure:>6}"
        f"  best {event.incumbent_gain:.3f}x  {clock(event.spent_seconds, event.budget_seconds)}"
        f"  {event.route or '(default)'}{reason}"
    )


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table of routes."""

    trial: str
    gain: float | None
    half_width: float | None
    outcome: str
    route: str


@dataclass(slots=True)
class LiveDisplay:
    """A screen that is drawn anew with each event, and by itself for its clock.

    Attributes:
        title: What is tuned.
        console: Where to draw.
        phase: What the study is at.
        trying: The route that is being tried.
        last: The trial that finished last.
        counts: Trials by outcome.
        rows: The latest routes; replaced as a whole, since another thread draws.
    """

    title: str
    console: Console
    phase: str = "Starting"
    trying: str = ""
    last: TrialFinished | None = None
    counts: Counter[str] = field(default_factory=Counter)
    rows: tuple[Row, ...] = ()
    _live: Live | None = None
    _since: float = field(default_factory=time.monotonic)

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
            self._add(_finalist_row(event))
        if self._live is not None:
            self._live.refresh()

    def _finished(self, event: TrialFinished) -> None:
        self.last, self._since = event, time.monotonic()
        word = outcome_word(event)
        self.counts = Counter({**self.counts, word: self.counts[word] + 1})
        route = str(event.route) or "(default)"
        self._add(Row(str(event.number), event.gain, event.half_width, word, route))

    def _add(self, row: Row) -> None:
        self.rows = (*self.rows, row)[-LAST_ROUTES:]

    def __rich__(self) -> Group:
        """The screen as it is now."""
        parts: list[Text | Table] = [
            Text(self.title, style="bold", overflow="ellipsis", no_wrap=True),
            Text(self.phase, style="cyan", overflow="ellipsis", no_wrap=True),
            self._progress(),
        ]
        if self.last is not None:
            counts = ", ".join(f"{count} {word}" for word, count in self.counts.most_common())
            best = (f"{self.last.incumbent_gain:.3f}x", "bold green")
            line = Text.assemble("best so far ", best, f"  {counts}", overflow="ellipsis")
            line.no_wrap = True
            parts.insert(2, line)
        if self.rows:
            parts.append(self._table())
        # The last line leaves room for the ^C that a terminal echoes: wrapped, it would shift all.
        room = max(LEAST_ROUTE, self.console.width - 4)
        parts.append(Text(shortened(self.trying, room), style="dim", no_wrap=True))
        return Group(*parts)

    def _progress(self) -> Text | Table:
        """Time since the start, or the budget once a trial has told it; goes on between events."""
        passed = time.monotonic() - self._since
        if self.last is None:
            return Text(clock(passed, math.inf), style="dim")
        spent, total = self.last.spent_seconds + passed, self.last.budget_seconds
        text = Text(clock(spent, total), style="dim")
        if math.isinf(total):
            return text
        line = Table.grid(padding=(0, 1))
        line.add_row(ProgressBar(total=total, completed=min(spent, total), width=BAR), text)
        return line

    def _table(self) -> Table:
        table = Table(box=None, pad_edge=False, expand=False)
        for name, width in WIDTHS.items():
            justify = "left" if name == "outcome" else "right"
            table.add_column(name, justify=justify, width=width, no_wrap=True)  # type: ignore[arg-type]
        table.add_column("route", no_wrap=True, overflow="ellipsis")
        room = max(LEAST_ROUTE, self.console.width - sum(WIDTHS.values()) - len(WIDTHS))
        for row in self.rows:
            gain = "-" if row.gain is None else f"{row.gain:.3f}x"
            spread = "" if row.half_width is None else percent(row.half_width)
            outcome = Text(row.outcome, style=STYLES.get(row.outcome, FAILED_STYLE))
            table.add_row(row.trial, gain, spread, outcome, Text(shortened(row.route, room)))
        return table

    @contextlib.contextmanager
    def running(self) -> Iterator[LiveDisplay]:
        """Draw until the block ends.

        What follows, verdict or error, takes the screen's place; after Ctrl-C the screen stays.
        """
        with Live(self, console=self.console, refresh_per_second=2, transient=True) as live:
            self._live = live
            try:
                yield self
            except KeyboardInterrupt:
                live.transient = False
                raise
            finally:
                self._live = None


def _finalist_row(event: RouteMeasured) -> Row:
    route = str(event.route) or "(default)"
    if event.gain is None:
        return Row(event.phase, None, None, "failed", f"{event.message}: {route}")
    return Row(event.phase, event.gain, event.half_width, event.message or "ok", route)


@contextlib.contextmanager
def display(title: str, console: Console, *, quiet: bool = False) -> Iterator[Listener]:
    """A listener for a study: live on a terminal, plain lines elsewhere, nothing if quiet."""
    if quiet:
        yield silent
    elif console.is_interactive and console.file.isatty():
        with LiveDisplay(title, console).running() as live:
            yield live
    else:
        yield _PlainLines(title, console)


@dataclass(slots=True)
class _PlainLines:
    """One line an event; the title comes with the first one, so that an error stands alone."""

    title: str
    console: Console

    def __call__(self, event: Event) -> None:
        for line in (self.title, describe(event)):
            if line:
                self.console.print(line, highlight=False, markup=False, soft_wrap=True)
        self.title = ""
