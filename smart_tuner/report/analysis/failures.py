"""Which values, and which pairs of values, crash, violate epsilon or time out."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from smart_tuner.report.analysis.culprits import culprits
from smart_tuner.report.analysis.table import value_table
from smart_tuner.report.words import OUTCOME_WORDS, SHOWN_WORDS
from smart_tuner.storages.history import outcome_key
from smart_tuner.storages.keys import OVER_LIMIT
from smart_tuner.trial.trial import TrialOutcome

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from smart_tuner.report.analysis.culprits import SuspectPair
    from smart_tuner.report.analysis.table import ValueTable
    from smart_tuner.report.reading import StudyView
    from smart_tuner.storages.history import TrialRecord

    Figures = npt.NDArray[np.float64]

Setting = tuple[str, str]

BLAMED = 0.5
"""A value or pair is blamed where it is more likely than not that it breaks routes."""

RAN = (TrialOutcome.FEASIBLE, TrialOutcome.INFEASIBLE)


@dataclass(frozen=True, slots=True)
class ValueFailures:
    """How routes with one value ended.

    Attributes:
        knob: The knob.
        value: The value.
        tried: Routes with it.
        counts: Failed routes by outcome, in words.
        crash_risk: Probability that it breaks every route, learned from all failures together.
        violation_risk: The same for epsilon and further limits, among routes that ran.
        excused: Routes with it over epsilon or a limit that a worse value in them explains.
    """

    knob: str
    value: str
    tried: int
    counts: Mapping[str, int]
    crash_risk: float
    violation_risk: float
    excused: int = 0

    @property
    def failed(self) -> int:
        """Failed routes with it."""
        return sum(self.counts.values())

    @property
    def violates(self) -> bool:
        """Whether it is blamed for going over epsilon or a limit."""
        return self.violation_risk >= BLAMED and self.violation_risk >= self.crash_risk

    @property
    def over(self) -> int:
        """Routes with it that ran and were over epsilon or a limit."""
        words = (OUTCOME_WORDS[TrialOutcome.INFEASIBLE], OVER_LIMIT)
        return sum(self.counts.get(word, 0) for word in words)

    @property
    def risk(self) -> float:
        """The larger of the two risks."""
        return max(self.crash_risk, self.violation_risk)


@dataclass(frozen=True, slots=True)
class BlamedPair:
    """Two values that break routes together though neither does alone.

    Attributes:
        first: Knob and value.
        second: Knob and value.
        risk: Probability that every route with both breaks.
        failed: Routes with both that broke; none with both worked.
    """

    first: Setting
    second: Setting
    risk: float
    failed: int


@dataclass(frozen=True, slots=True)
class FailureMap:
    """What did not work.

    Attributes:
        values: Values of failed routes, the most suspect first.
        pairs: Blamed pairs, the most suspect first.
        words: Outcomes that occurred, the most frequent first.
        failed: Trials that cannot ship: those that failed and those over epsilon or a limit.
        over: Those of them that ran and were over epsilon or a limit.
        trials: Finished trials.
        messages: What failed routes said, by how often, the most frequent first.
    """

    values: tuple[ValueFailures, ...]
    pairs: tuple[BlamedPair, ...]
    words: tuple[str, ...]
    failed: int
    over: int
    trials: int
    messages: tuple[tuple[str, int], ...]

    @property
    def violators(self) -> frozenset[Setting]:
        """The values that cost too much accuracy, or break another limit."""
        return frozenset((value.knob, value.value) for value in self.values if value.violates)

    @property
    def blamed(self) -> tuple[ValueFailures, ...]:
        """The values that break routes by themselves, more likely than not."""
        return tuple(
            value
            for value in self.values
            if value.risk >= BLAMED and not (value.violates and value.excused >= value.over)
        )

    @property
    def ended(self) -> str:
        """How many cannot ship and why, to be put after a count of trials; empty for none."""
        crashed = self.failed - self.over
        parts = ((crashed, "failed"), (self.over, "over epsilon or a limit"))
        told = ", ".join(f"{count} {words}" for count, words in parts if count)
        return f": {told}" if told else ""


def failures_of(view: StudyView) -> FailureMap:
    """Find the culprits among all finished trials."""
    records = view.records
    failed = [record for record in records if record.outcome is not TrialOutcome.FEASIBLE]
    if not failed:
        return FailureMap((), (), (), 0, 0, len(records), ())
    table = value_table(records)
    ran = np.array([record.outcome in RAN for record in records])
    over = np.array([record.outcome is TrialOutcome.INFEASIBLE for record in records])
    crash = culprits(table.flags, ~ran)
    violation = culprits(table.flags[ran], over[ran])
    risks = (crash.single, violation.single)
    words = Counter(_word(record) for record in failed)
    messages = Counter(record.message for record in failed if record.message)
    found = _excused(_values(table, records, risks), records)
    return FailureMap(
        values=tuple(sorted(found, key=_suspicion)),
        pairs=(*_named(crash.pairs, table), *_named(violation.pairs, table)),
        words=tuple(word for word, _ in words.most_common()),
        failed=len(failed),
        over=int(over.sum()),
        trials=len(records),
        messages=tuple(messages.most_common()),
    )


def _word(record: TrialRecord) -> str:
    key = outcome_key(record)
    return SHOWN_WORDS.get(key, key)


def _suspicion(value: ValueFailures) -> tuple[float, float, str, str]:
    return (-round(value.risk, 3), -value.failed / value.tried, value.knob, value.value)


def _values(
    table: ValueTable, records: Sequence[TrialRecord], risks: tuple[Figures, Figures]
) -> list[ValueFailures]:
    """Every value that a failed route had."""
    found = []
    for place, setting in enumerate(table.values):
        mine = [records[row] for row in np.flatnonzero(table.flags[:, place]).tolist()]
        counts = Counter(_word(r) for r in mine if r.outcome is not TrialOutcome.FEASIBLE)
        if counts:
            crash, violation = (float(risk[place]) for risk in risks)
            found.append(ValueFailures(*setting, len(mine), dict(counts), crash, violation))
    return found


def _excused(
    values: Sequence[ValueFailures], records: Sequence[TrialRecord]
) -> list[ValueFailures]:
    """Put each violation on the worst violator in its route, and excuse the others there.

    A route is as inexact as its worst value: who always costs an infinite loss explains one, and
    says nothing of who else was there.
    """
    over = [record for record in records if record.outcome is TrialOutcome.INFEASIBLE]
    ranks: dict[Setting, tuple[float, float, int]] = {}
    for value in values:
        if value.violates:
            setting = (value.knob, value.value)
            losses = [r.violation or 0.0 for r in over if setting in r.route.settings]
            ranks[setting] = (min(losses, default=0.0), value.violation_risk, len(losses))
    excused: Counter[Setting] = Counter()
    for record in over:
        mine = sorted(set(record.route.settings) & ranks.keys(), key=lambda one: ranks[one])
        excused.update(mine[:-1])
    return [replace(value, excused=excused[value.knob, value.value]) for value in values]


def _named(pairs: Sequence[SuspectPair], table: ValueTable) -> list[BlamedPair]:
    """Blamed pairs by knob and value, the most suspect first."""
    found = [
        BlamedPair(table.values[pair.first], table.values[pair.second], pair.risk, pair.failed)
        for pair in pairs
        if pair.risk >= BLAMED
    ]
    return sorted(found, key=lambda pair: (-pair.risk, -pair.failed, pair.first))
