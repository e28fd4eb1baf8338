"""The budget: how much time is left, and what is kept back to confirm finalists."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from statistics import median

FINALIST_SHARE = 0.3
"""Share of the time that the search leaves for finalists. Five fresh builds a side, three
candidates and the reset of useless knobs cost about forty trials of the search."""

FINALIST_SECONDS = (15.0, 240.0)
"""What that share is at least (if the budget has twice as much) and at most."""


@dataclass(slots=True)
class Budget:
    """Wall-clock and trial limits of one study, over all of its sessions.

    Attributes:
        seconds: Limit on the whole study.
        trials: Limit on the number of trials, or ``None``.
        spent_before: Seconds that earlier sessions spent.
        started: When this session began, by the monotonic clock.
    """

    seconds: float
    trials: int | None = None
    spent_before: float = 0.0
    started: float = field(default_factory=time.monotonic)

    @property
    def spent(self) -> float:
        """Seconds spent so far, earlier sessions included."""
        return self.spent_before + time.monotonic() - self.started

    @property
    def left(self) -> float:
        """Seconds left, finalists included; never negative."""
        return max(0.0, self.seconds - self.spent)

    @property
    def finalist_seconds(self) -> float:
        """Seconds that are kept back for finalists."""
        low, high = FINALIST_SECONDS
        return max(min(FINALIST_SHARE * self.seconds, high), min(low, self.seconds / 2))

    @property
    def search_left(self) -> float:
        """Seconds left for the search."""
        return max(0.0, self.left - self.finalist_seconds)

    def allows_another(self, done: int, trial_seconds: list[float]) -> bool:
        """Whether one more trial fits.

        Args:
            done: Trials done so far.
            trial_seconds: What finished trials took. The next one is taken to last as long as
                the median of the latest ones and a half more, so that the budget is not overrun
                by a trial that could have been foreseen.
        """
        if self.trials is not None and done >= self.trials:
            return False
        expected = 1.5 * median(trial_seconds[-20:]) if trial_seconds else 0.0
        return self.search_left > expected
