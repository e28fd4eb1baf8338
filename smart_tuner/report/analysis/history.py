"""How the search went: each trial, the best so far, and the time that they took."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from smart_tuner.report.words import DEFAULT_WORD, SHOWN_WORDS
from smart_tuner.storages.history import outcome_key
from smart_tuner.trial.trial import TrialOutcome

if TYPE_CHECKING:
    from smart_tuner.report.reading import StudyView
    from smart_tuner.storages.history import TrialRecord


@dataclass(frozen=True, slots=True)
class HistoryPoint:
    """One finished trial.

    Attributes:
        number: Trial number.
        word: Its outcome in a word or two, as people read it.
        feasible: Whether it may ship at all.
        gain: Baseline over candidate latency; ``None`` if it was not measured.
        half_width: Half of the 95 % interval on ln(gain); ``None`` if unknown.
        incumbent: Best gain of a feasible trial up to here; 1.0 while none is faster.
        seconds: Wall-clock seconds of all trials up to this one, itself included.
        route: Canonical text of the route.
        reason: Why it was proposed.
    """

    number: int
    word: str
    feasible: bool
    gain: float | None
    half_width: float | None
    incumbent: float
    seconds: float
    route: str
    reason: str


@dataclass(frozen=True, slots=True)
class History:
    """All finished trials, in order.

    Attributes:
        points: The trials.
        budget_seconds: Budget of the whole study, confirming included.
        min_gain: The smallest gain that ships.
    """

    points: tuple[HistoryPoint, ...]
    budget_seconds: float
    min_gain: float

    @property
    def gain_range(self) -> tuple[float, float]:
        """Gains that a picture shows in their place: one slow route must not flatten the rest."""
        gains = [point.gain for point in self.points if point.gain is not None] or [1.0]
        high = max(*gains, self.min_gain, 1.02)
        return max(min(*gains, 0.98), 1 - 2 * (high - 1), 0.0), high

    @property
    def slower(self) -> tuple[HistoryPoint, ...]:
        """The trials below that range: they are drawn at its edge."""
        low, _ = self.gain_range
        return tuple(point for point in self.points if point.gain is not None and point.gain < low)

    @property
    def improvements(self) -> tuple[HistoryPoint, ...]:
        """The trials that raised the best gain."""
        best, found = 1.0, []
        for point in self.points:
            if point.incumbent > best:
                best = point.incumbent
                found.append(point)
        return tuple(found)


def history_of(view: StudyView) -> History:
    """Put a study's trials in order."""
    points, best, seconds = [], 1.0, 0.0
    for record in view.records:
        gain = view.gain(record)
        feasible = record.outcome is TrialOutcome.FEASIBLE
        if feasible and gain is not None:
            best = max(best, gain)
        seconds += record.seconds.get("total", 0.0)
        points.append(
            HistoryPoint(
                number=record.number,
                word=_word(record),
                feasible=feasible,
                gain=gain,
                half_width=record.half_width,
                incumbent=best,
                seconds=seconds,
                route=str(record.route),
                reason=record.reason,
            )
        )
    return History(tuple(points), view.budget_seconds, view.min_gain)


def _word(record: TrialRecord) -> str:
    """How a trial ended; the default's own engine is no route that did nothing."""
    key = outcome_key(record)
    return (
        DEFAULT_WORD if not len(record.route) and record.unchanged else SHOWN_WORDS.get(key, key)
    )
