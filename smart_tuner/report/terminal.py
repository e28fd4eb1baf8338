"""The terminal: live where there is one, plain lines in a log file."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from smart_tuner.report.known import Known
from smart_tuner.report.live import LiveDisplay
from smart_tuner.report.pace import Pace
from smart_tuner.report.words import clock, outcome_word, percent
from smart_tuner.study.progress.events import (
    Note,
    PhaseStarted,
    RouteMeasured,
    TrialFinished,
    TrialsKept,
    TrialStarted,
    silent,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from smart_tuner.study.progress.events import Event, Listener


def describe(event: Event, why: str = "") -> str:
    """One plain line for an event; empty for what a log need not have.

    Args:
        event: The event.
        why: What the route was tried for.
    """
    if isinstance(event, Note):
        return f"note: {event.text}"
    if isinstance(event, PhaseStarted):
        return f"[{event.phase}] {event.text}"
    if isinstance(event, TrialsKept):
        known = Known.of(event.records, event.baseline_ms)
        return f"kept from before, {known.tried}; best {known.best or 'the default'}"
    if isinstance(event, TrialFinished):
        return _trial_line(event, why)
    if isinstance(event, RouteMeasured):
        gain = "failed" if event.gain is None else f"{event.gain:.3f}x"
        spread = "" if event.half_width is None else f" +-{percent(event.half_width)}"
        reason = f"  {event.message}" if event.message else ""
        return f"  {event.phase}: {gain}{spread}  {event.route or '(default)'}{reason}"
    return ""


def _trial_line(event: TrialFinished, why: str) -> str:
    figure = "" if event.gain is None else f"{event.gain:.3f}x"
    reason = f"  {event.message}" if event.message else ""
    purpose = f"  {why:<11}" if why else ""
    return (
        f"trial {event.number:>3} {outcome_word(event):<12} {figure:>6}"
        f"  best {event.incumbent_gain:.3f}x  {clock(event.spent_seconds, event.budget_seconds)}"
        f"{purpose}  {event.route or '(default)'}{reason}"
    )


@contextlib.contextmanager
def display(
    title: str, console: Console, *, quiet: bool = False, budget: float = math.inf
) -> Iterator[Listener]:
    """A listener for a study: live on a terminal, plain lines elsewhere, nothing if quiet.

    Args:
        title: What is tuned.
        console: Where to show it.
        quiet: Show nothing.
        budget: The study's budget in seconds, for what is left of it.
    """
    if quiet:
        yield silent
    elif console.is_interactive and console.file.isatty():
        with LiveDisplay(title, console, Pace(budget)).running() as live:
            yield live
    else:
        yield _PlainLines(title, console)


@dataclass(slots=True)
class _PlainLines:
    """One line an event; the title comes with the first one, so that an error stands alone."""

    title: str
    console: Console
    why: str = ""

    def __call__(self, event: Event) -> None:
        if isinstance(event, TrialStarted):
            self.why = event.why.partition(":")[0]
        for line in (self.title, describe(event, self.why)):
            if line:
                self.console.print(line, highlight=False, markup=False, soft_wrap=True)
        self.title = ""
