"""The budget: how much time is left, and what is kept back to confirm finalists."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

FINALIST_SHARE = 0.3
"""Share of the time that the search leaves for finalists. Five fresh builds a side, three
candidates and the reset of useless knobs cost about forty trials of the search."""

FINALIST_SECONDS = (15.0, 240.0)
"""What that share is at least (if the budget has twice as much) and at most."""

LEAST_ROUNDS = 4
"""Fresh measurements that finalists need at least: one finalist, one reset, two to report."""

FULL_ROUNDS = 12
"""Fresh measurements of a whole confirmation: three finalists, four resets, five to report."""

SLOW_SHARE = 0.4
"""Most that slow builds may take of the budget for the least number of rounds."""

BUILDS_A_ROUND = 2
"""A fresh measurement builds both arms; each costs about what a trial does, or what a build from
an empty timing cache does where that is more."""

QUESTION_SHARE = 0.1
"""Share of the budget that may go into asking whether the timing cache may be shared."""

LEAST_TRIAL_SECONDS = 20.0
"""A trial is not given a shorter deadline than this because the search ends, if the budget as a
whole allows it."""


@dataclass(slots=True)
class Budget:
    """Wall-clock and trial limits of one study, over all of its sessions.

    Attributes:
        seconds: Limit on the whole study.
        trials: Limit on the number of trials, or ``None``.
        spent_before: Seconds that earlier sessions spent.
        cold_build_seconds: What a build takes that starts from an empty timing cache, as those
            of finalists do; 0 where trials tell that themselves.
        keeps_back: There is something to confirm, which the search leaves time for.
        started: When this session began, by the monotonic clock.
    """

    seconds: float
    trials: int | None = None
    spent_before: float = 0.0
    cold_build_seconds: float = 0.0
    keeps_back: bool = True
    started: float = field(default_factory=time.monotonic)

    @property
    def spent(self) -> float:
        """Seconds spent so far, earlier sessions included."""
        return self.spent_before + time.monotonic() - self.started

    def catch_up(self, spent: float) -> None:
        """Take over what others know to have been spent, if it is more."""
        self.spent_before += max(0.0, spent - self.spent)

    @property
    def left(self) -> float:
        """Seconds left, finalists included; never negative."""
        return max(0.0, self.seconds - self.spent)

    @property
    def finalist_seconds(self) -> float:
        """The finalists' share of the budget."""
        low, high = FINALIST_SECONDS
        return max(min(FINALIST_SHARE * self.seconds, high), min(low, self.seconds / 2))

    def search_left(self, trial_seconds: Sequence[float]) -> float:
        """Seconds left for the search: all of them while there is nothing to confirm.

        Where builds are slow, finalists are left what a whole confirmation takes, up to their
        share; if that is too little for the least number of rounds, somewhat more.

        Args:
            trial_seconds: What finished trials took.
        """
        if not self.keeps_back:
            return self.left
        a_round = BUILDS_A_ROUND * max(_typical(trial_seconds), self.cold_build_seconds)
        whole = min(FULL_ROUNDS * a_round, FINALIST_SHARE * self.seconds)
        least = min(LEAST_ROUNDS * a_round, SLOW_SHARE * self.seconds)
        return max(0.0, self.left - max(self.finalist_seconds, whole, least))

    def search_ends_in(self, trial_seconds: Sequence[float]) -> float:
        """Seconds until the search is likely to end: for want of time, or of trials.

        Args:
            trial_seconds: What finished trials took.
        """
        left = self.search_left(trial_seconds)
        if self.trials is None:
            return left
        rest = max(0, self.trials - len(trial_seconds))
        return min(left, rest * _typical(trial_seconds)) if trial_seconds else left

    @property
    def affords_question(self) -> bool:
        """Whether one more build is little enough to find out what it is worth to know."""
        return self.cold_build_seconds <= QUESTION_SHARE * self.seconds

    def trial_deadline(self, trial_seconds: Sequence[float], longest: float) -> float:
        """Seconds that the next trial may take, so that the budget is not overrun by it.

        Args:
            trial_seconds: What finished trials took.
            longest: What any trial may take.
        """
        least = min(LEAST_TRIAL_SECONDS, self.left)
        return min(longest, max(least, self.search_left(trial_seconds)))

    def allows_another(self, trial_seconds: Sequence[float]) -> bool:
        """Whether one more trial fits.

        Args:
            trial_seconds: What finished trials took. The next one is taken to last as long as
                the median of the latest ones and a half more, so that the budget is not overrun
                by a trial that could have been foreseen.
        """
        if self.trials is not None and len(trial_seconds) >= self.trials:
            return False
        return self.search_left(trial_seconds) > 1.5 * _typical(trial_seconds)


def _typical(trial_seconds: Sequence[float]) -> float:
    """What a trial takes nowadays; 0 as long as nobody knows."""
    return median(trial_seconds[-20:]) if trial_seconds else 0.0
