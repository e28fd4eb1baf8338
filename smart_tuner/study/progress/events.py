"""What a running study tells its listener; displays are made of these and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from smart_tuner.route.build_route import BuildRoute
    from smart_tuner.storages.history import TrialRecord
    from smart_tuner.trial.trial import TrialOutcome


@dataclass(frozen=True, slots=True)
class Note:
    """Something that the user should hear."""

    text: str


@dataclass(frozen=True, slots=True)
class PhaseStarted:
    """A phase of the study begins.

    Attributes:
        phase: ``prepare``, ``baseline``, ``search``, ``finalists``, ``reset``, ``report``,
            ``sustained``.
        text: One line for people.
        spent_seconds: Budget spent by all sessions so far, once that is known.
    """

    phase: str
    text: str
    spent_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class TrialsKept:
    """A search goes on: what earlier sessions have tried.

    Attributes:
        records: Finished trials.
        baseline_ms: The study's frozen baseline latency, in milliseconds.
    """

    records: tuple[TrialRecord, ...]
    baseline_ms: float


@dataclass(frozen=True, slots=True)
class TrialStarted:
    """A route is being tried.

    Attributes:
        number: Trial number.
        route: The route.
        reason: What the sampler said.
        why: Why it is tried, in words for people: ``screening: 2 values that no route had``.
    """

    number: int
    route: BuildRoute
    reason: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class TrialFinished:
    """A route was tried.

    Attributes:
        number: Trial number.
        route: The route.
        outcome: How it ended.
        gain: Baseline over candidate latency; ``None`` if it was not measured.
        half_width: Half of the 95 % interval on ln(gain); ``None`` if it was not measured.
        unchanged: The engine is the baseline's.
        over_limits: Limits beside accuracy that it breaks.
        search_left_seconds: What is left for the search, as far as it can be foreseen.
        message: One line; empty for a plain success.
        incumbent_gain: Best gain of a feasible trial so far.
        spent_seconds: Budget spent so far.
        budget_seconds: Budget in all.
    """

    number: int
    route: BuildRoute
    outcome: TrialOutcome
    gain: float | None
    half_width: float | None
    unchanged: bool
    message: str
    incumbent_gain: float
    spent_seconds: float
    budget_seconds: float
    over_limits: tuple[str, ...] = ()
    search_left_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class RouteMeasured:
    """A finalist was rebuilt and measured on fresh samples."""

    phase: str
    route: BuildRoute
    gain: float | None
    half_width: float | None
    message: str


Event = Note | PhaseStarted | TrialsKept | TrialStarted | TrialFinished | RouteMeasured
Listener = Callable[[Event], None]


def silent(event: Event) -> None:
    """Listen to nothing."""
    del event
