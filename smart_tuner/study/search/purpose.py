"""Why a route is tried, in words: what the sampler said, or what the route itself shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from smart_tuner.storages.history import best_feasible
from smart_tuner.trial.trial import TrialOutcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from smart_tuner.route.build_route import BuildRoute
    from smart_tuner.storages.history import TrialRecord

    Settings = set[tuple[str, str]]

BASELINE, PRIOR = "baseline", "prior"
SCREENING, EXPLORING, EXPLOITING = "screening", "exploring", "exploiting"
INTERACTION, CONFIRMING = "interaction", "confirming"
PURPOSES = (BASELINE, PRIOR, SCREENING, EXPLORING, EXPLOITING, INTERACTION, CONFIRMING)
"""What a route may be tried for. A sampler that names one of them is believed."""

LOCAL_CHANGES = 2
"""A route this close to the best one is a local change of it."""


@dataclass(frozen=True, slots=True)
class Purpose:
    """Why a route is tried.

    Attributes:
        word: One of ``PURPOSES``.
        detail: What that means for this route, in a few words.
    """

    word: str
    detail: str

    def __str__(self) -> str:
        return f"{self.word}: {self.detail}" if self.detail else self.word


def purpose_of(route: BuildRoute, said: str, records: Sequence[TrialRecord]) -> Purpose:
    """Why a route is tried.

    Args:
        route: The route.
        said: The reason of its proposal; may be empty, or a word of the sampler's own.
        records: Trials that had finished by then.
    """
    values = set(route.settings)
    best = best_feasible(records)
    step = _Step(
        values=values,
        new=values - {item for record in records for item in record.route.settings},
        changed=values ^ set(best.route.settings if best else ()),
        worked={
            item
            for record in records
            if record.outcome is TrialOutcome.FEASIBLE
            for item in record.route.settings
        },
        away=bool(best and best.route.settings),
    )
    word = next((name for name in PURPOSES if said.startswith(name)), "")
    word = word or _derived(step)
    return Purpose(word, step.detail(word))


@dataclass(frozen=True, slots=True)
class _Step:
    """How a route differs from what is known.

    Attributes:
        values: What differs from the default.
        new: Of these, what no finished route had.
        changed: What differs from the best route.
        worked: What some working route had.
        away: The best route is not the default.
    """

    values: Settings
    new: Settings
    changed: Settings
    worked: Settings
    away: bool

    def detail(self, word: str) -> str:
        """What the purpose means for this route."""
        best = "the best route" if self.away else "the default"
        if not self.values:
            return "the default route"
        if word == SCREENING and self.new:
            return f"{_values(len(self.new))} that no route had"
        if word == SCREENING and (unproven := self.values - self.worked):
            return f"{_values(len(unproven))} that no working route had"
        if word == INTERACTION:
            return f"{_values(len(self.values))} that worked apart, now together"
        if word == PRIOR:
            return f"{_values(len(self.values))} that earlier studies point to"
        knobs = len({name for name, _ in self.changed})
        return f"{best}, {knobs} knob{'s' * (knobs != 1)} changed"


def _values(count: int) -> str:
    return f"{count} value{'s' * (count != 1)}"


def _derived(step: _Step) -> str:
    """What the route itself shows: something new, something near, or the good put together."""
    if not step.values:
        return BASELINE
    if 2 * len(step.new) > len(step.values & step.changed):
        return SCREENING
    if len({name for name, _ in step.changed}) <= LOCAL_CHANGES:
        return EXPLOITING
    return INTERACTION if step.values <= step.worked else EXPLORING
