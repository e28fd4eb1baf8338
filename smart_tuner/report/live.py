"""The live screen of a running study: what is known, what is tried and why, what is left."""

from __future__ import annotations

import contextlib
import math
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from smart_tuner.report.known import Best, Known, beside, sparkline
from smart_tuner.report.pace import CONFIRMING, Pace
from smart_tuner.report.words import clock, outcome_word, percent, shortened
from smart_tuner.study.progress.events import (
    Note,
    PhaseStarted,
    RouteMeasured,
    TrialFinished,
    TrialsKept,
    TrialStarted,
)
from smart_tuner.trial.trial import TrialOutcome

if TYPE_CHECKING:
    from collections.abc import Iterator

    from smart_tuner.study.progress.events import Event

LAST_ROUTES = 8
WIDTHS = {"trial": 9, "gain": 7, "+-": 8, "outcome": 12}
"""Columns before the route, of fixed width so that the table does not jump."""

WHY_WIDTH = 11
WIDE, NARROW = 110, 60
"""From so many columns on, the table says why each route was tried; below, no route."""

LEAST_ROUTE = 20
LABEL = 7
BAR, LEAST_BAR = 60, 10
SPARKS = 40
STYLES = {"no effect": "dim", "ok": "", "over epsilon": "yellow", "over limit": "yellow"}
FAILED_STYLE = "red"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table of routes."""

    trial: str
    gain: float | None
    half_width: float | None
    outcome: str
    route: str
    why: str = ""


@dataclass(slots=True)
class LiveDisplay:
    """A screen that is drawn anew with each event, and by itself for its clock.

    Attributes:
        title: What is tuned.
        console: Where to draw.
        pace: What is left of the budget.
        phase: The phase that the study is in, in its own words and in those for people.
        trying: The trial that is tried.
        known: What finished trials tell.
        rows: The latest routes; replaced as a whole, since another thread draws.
    """

    title: str
    console: Console
    pace: Pace = field(default_factory=Pace)
    phase: tuple[str, str] = ("prepare", "Starting")
    trying: TrialStarted | None = None
    known: Known = field(default_factory=Known)
    rows: tuple[Row, ...] = ()
    _live: Live | None = None
    _began: float = field(default_factory=time.monotonic)

    def __call__(self, event: Event) -> None:
        """Take an event in and draw."""
        if isinstance(event, Note):
            self.console.print(Text(f"note: {event.text}", style="yellow"))
        elif isinstance(event, PhaseStarted):
            self._begin(event)
        elif isinstance(event, TrialsKept):
            self.known = Known.of(event.records, event.baseline_ms)
        elif isinstance(event, TrialStarted):
            self.trying, self._began = event, time.monotonic()
        elif isinstance(event, TrialFinished):
            self._finished(event)
        else:
            self._began = time.monotonic()
            self._add(_finalist_row(event, self.known.best))
        if self._live is not None:
            self._live.refresh()

    def _begin(self, event: PhaseStarted) -> None:
        self.phase, self.trying = (event.phase, event.text), None
        self._began = time.monotonic()
        if event.spent_seconds is not None:
            self.pace.told(event.spent_seconds)

    def _finished(self, event: TrialFinished) -> None:
        self.pace.total = event.budget_seconds
        self.pace.told(event.spent_seconds, event.search_left_seconds)
        word = outcome_word(event)
        route = beside(event.route, self.known.best)
        is_good = event.outcome is TrialOutcome.FEASIBLE and event.gain is not None
        tried = Best(event.number, event.route, event.gain or 1.0, event.half_width)
        self.known = self.known.after(tried, word, is_good=is_good)
        why = self.trying.why.partition(":")[0] if self.trying else ""
        self._add(Row(str(event.number), event.gain, event.half_width, word, route, why))
        self.trying = None

    def _add(self, row: Row) -> None:
        self.rows = (*self.rows, row)[-LAST_ROUTES:]

    def __rich__(self) -> Group:
        """The screen as it is now."""
        known, tried = self.known, bool(self.known.counts)
        parts: list[RenderableType] = [
            _line(self.title, "bold"),
            _line(self.phase[1], "cyan"),
            self._progress(),
            self._fact("time", self.pace.words(self.phase[0])),
            *([self._best(), self._fact("", self._best_route)] if tried else []),
            self._fact("noise", _noise(known)),
            self._fact("tried", known.tried if tried else ""),
            self._fact("not ok", known.not_ok),
        ]
        if self.rows:
            parts.append(self._table())
        # The last line leaves room for the ^C that a terminal echoes: wrapped, it would shift all.
        room = max(LEAST_ROUTE, self.console.width - 4)
        parts += [Text(shortened(text, room), "dim", no_wrap=True) for text in self._now()]
        return Group(*(part for part in parts if not isinstance(part, Text) or part.plain))

    def _fact(self, label: str, text: str) -> Text:
        return _line(f"{label:<{LABEL}}{text}") if text else Text()

    @property
    def _best_route(self) -> str:
        return str(self.known.best.route) if self.known.best else ""

    def _best(self) -> Text:
        """The incumbent, and the way to it."""
        best = self.known.best
        line = Text(f"{'best':<{LABEL}}", no_wrap=True, overflow="ellipsis")
        line.append(str(best) if best else "1.000x, the default", "bold green" if best else "bold")
        room = min(SPARKS, self.console.width - line.cell_len - 2)
        ascii_only = self.console.options.ascii_only
        if best and (sparks := sparkline(self.known.incumbents, room, ascii_only=ascii_only)):
            line.append(f"  {sparks}", "green")
        return line

    def _progress(self) -> Text | Table:
        """Time since the start, and the budget; goes on between events."""
        spent, total = self.pace.now, self.pace.total
        text = Text(clock(spent, total), style="dim")
        if math.isinf(total):
            return text
        width = max(LEAST_BAR, min(BAR, self.console.width - text.cell_len - 2))
        line = Table.grid(padding=(0, 1))
        done = min(spent, total)
        bar = ProgressBar(total=total, completed=done, width=width, complete_style="cyan")
        line.add_row(bar, text)
        return line

    def _now(self) -> list[str]:
        """What is tried and why; nothing before the search."""
        since = clock(time.monotonic() - self._began, math.inf)
        if self.trying is not None:
            trial = self.trying
            why = trial.why or trial.reason
            return [
                f"{'now':<{LABEL}}trial {trial.number} ({since}), {why}",
                f"{'':<{LABEL}}{beside(trial.route, self.known.best)}",
            ]
        if self.phase[0] in CONFIRMING:
            return [f"{'now':<{LABEL}}confirming: both arms built anew and measured ({since})"]
        return []

    def _table(self) -> Table:
        width = self.console.width
        widths = dict(WIDTHS) | ({"why": WHY_WIDTH} if width >= WIDE else {})
        has_route = width >= NARROW
        table = Table(box=None, pad_edge=False, expand=False)
        for name, columns in widths.items():
            justify = "left" if name in {"outcome", "why"} else "right"
            table.add_column(name, justify=justify, width=columns, no_wrap=True)  # type: ignore[arg-type]
        if has_route:
            table.add_column("route", no_wrap=True, overflow="ellipsis")
        room = max(LEAST_ROUTE, width - sum(widths.values()) - len(widths))
        for row in self.rows:
            cells: list[RenderableType] = [
                row.trial,
                "-" if row.gain is None else f"{row.gain:.3f}x",
                "" if row.half_width is None else percent(row.half_width),
                Text(row.outcome, style=STYLES.get(row.outcome, FAILED_STYLE)),
                *([Text(row.why)] if "why" in widths else []),
                *([Text(shortened(row.route, room))] if has_route else []),
            ]
            table.add_row(*cells)
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


def _line(text: str, style: str = "") -> Text:
    return Text(text, style=style, overflow="ellipsis", no_wrap=True)


def _noise(known: Known) -> str:
    if known.noise is None:
        return ""
    return f"+-{percent(known.noise)} on a trial's gain; proven is only what is confirmed"


def _finalist_row(event: RouteMeasured, best: Best | None) -> Row:
    route = beside(event.route, best)
    if event.gain is None:
        return Row(event.phase, None, None, "failed", f"{event.message}: {route}", "confirming")
    outcome = event.message or "ok"
    return Row(event.phase, event.gain, event.half_width, outcome, route, "confirming")
