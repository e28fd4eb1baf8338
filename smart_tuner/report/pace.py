"""How much time is left, phase by phase, between two events of a study."""

from __future__ import annotations

import datetime
import math
import time
from dataclasses import dataclass, field

from smart_tuner.report.words import clock

CONFIRMING = frozenset({"finalists", "reset", "report", "sustained"})
"""Phases after the search."""

A_DAY = 20 * 3600.0
"""From so many seconds on, the hour alone would be taken for today's."""


@dataclass(slots=True)
class Pace:
    """What is left of a budget; goes on by itself between events.

    Attributes:
        total: The budget in seconds; may be infinite.
        spent: Seconds spent by all sessions, as of the latest event that told.
        search_left: Seconds that the search had left then; ``None`` if it did not tell.
    """

    total: float = math.inf
    spent: float = 0.0
    search_left: float | None = None
    _since: float = field(default_factory=time.monotonic)

    def told(self, spent: float, search_left: float | None = None) -> None:
        """Take in what an event says."""
        self.spent, self.search_left = spent, search_left
        self._since = time.monotonic()

    @property
    def passed(self) -> float:
        """Seconds since the latest event that told."""
        return time.monotonic() - self._since

    @property
    def now(self) -> float:
        """Seconds spent by now."""
        return self.spent + self.passed

    def words(self, phase: str) -> str:
        """What is left of this phase and of all; empty where nothing is known."""
        left = max(0.0, self.total - self.now)
        if left == 0:
            return "the budget is spent: done with what is being measured"
        parts = []
        if phase == "search" and self.search_left is not None:
            parts.append(self._search_words(self.search_left - self.passed))
        elif phase in CONFIRMING and math.isfinite(left):
            parts.append(f"confirming for {clock(left, math.inf)} at most")
        if math.isfinite(left):
            parts.append(f"done by {hour(left)} at the latest")
        return "; ".join(parts)

    @staticmethod
    def _search_words(left: float) -> str:
        if left <= 0:
            return "the search ends with this trial"
        if math.isinf(left):
            return "the search goes on until you stop it"
        return f"searching for {clock(left, math.inf)} more, then confirming"


def hour(seconds: float) -> str:
    """The time of day in so many seconds, here; with the day if that is not today."""
    then = datetime.datetime.now().astimezone() + datetime.timedelta(seconds=seconds)
    return then.strftime("%H:%M" if seconds < A_DAY else "%a %d %b %H:%M")
