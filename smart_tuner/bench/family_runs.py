"""Searches within a family: each member once from nothing, then from what the others taught."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from smart_tuner.bench.play import play_with
from smart_tuner.bench.run import Task
from smart_tuner.bench.workloads import Workload
from smart_tuner.priors.build import build_prior, merge_priors
from smart_tuner.priors.distance import Nearness
from smart_tuner.priors.document import StudyEntry
from smart_tuner.priors.observed import ObservedStudy
from smart_tuner.priors.sources import observation
from smart_tuner.priors.use import believe

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from smart_tuner.bench.run import Run
    from smart_tuner.priors.document import Evidence, Prior
    from smart_tuner.samplers.route_sampler.beliefs import Beliefs
    from smart_tuner.simulate.families import Family
    from smart_tuner.storages.history import TrialRecord

COLD, WARM, UNRELATED, INVERTED, OPPOSITE = "cold", "warm", "unrelated", "inverted", "opposite"
KINDS = (COLD, WARM, UNRELATED, INVERTED, OPPOSITE)
"""Where a search begins: nothing; four siblings; four members of another family; the siblings'
studies with every sign turned round; the same, and what mattered called idle and the reverse."""

MEMBERS = 5
SAMPLER = "default"
OTHERS = 500_000
"""Distance between the seeds of a family and of the unrelated one."""

OPPOSITE_SIZE = 0.03


@dataclass(frozen=True, slots=True)
class FamilyPlan:
    """One family and what is run on it.

    Attributes:
        family: The family.
        taught: Trials of each sibling's study, from which the prior is made.
        trials: Trials of the searches that are compared.
        kinds: Some of ``KINDS``, ``cold`` among them.
        targets: How many members are searched; the others only teach.
    """

    family: Family
    taught: int
    trials: int
    kinds: tuple[str, ...]
    targets: int = MEMBERS

    def tasks(self) -> tuple[Task, ...]:
        """What comes out of it, in order."""
        return tuple(
            self.task(kind, member) for member in range(self.targets) for kind in self.kinds
        )

    def task(self, kind: str, member: int) -> Task:
        """One run; its trials are those that are scored."""
        return Task(kind, self.workload(member), self.trials)

    def workload(self, member: int) -> Workload:
        """A member as a workload: every kind of search meets the same noise on it."""
        family = self.family
        name = f"family-{100 * family.shared:.0f}-{100 * family.flipped:.0f}"
        seed = family.seed * MEMBERS + member
        return Workload(name, seed, family.knob_count)

    def digest(self, task: Task) -> str:
        """Of the member that the task is on; those that teach it are of the same generator."""
        return _member_digest(self.family, task.workload.seed % MEMBERS)


@lru_cache(MEMBERS)
def _member_digest(family: Family, member: int) -> str:
    return family.member(member).digest()


def play_family(plan: FamilyPlan) -> tuple[Run, ...]:
    """Run everything on one family, in this process."""
    studies = [_Played.of(plan, member) for member in range(MEMBERS)]
    stranger = replace(plan, family=replace(plan.family, seed=plan.family.seed + OTHERS))
    others: list[_Played] = []
    if UNRELATED in plan.kinds:
        others = [_Played.of(stranger, member) for member in range(MEMBERS - 1)]
    return tuple(_runs(plan, studies, others))


def _runs(
    plan: FamilyPlan, studies: Sequence[_Played], others: Sequence[_Played]
) -> Iterator[Run]:
    for member in range(plan.targets):
        siblings = [study.prior for place, study in enumerate(studies) if place != member]
        taught = merge_priors(siblings)
        priors = {
            WARM: taught,
            UNRELATED: merge_priors(study.prior for study in others) if others else taught,
            INVERTED: _changed(taught, turned=True),
            OPPOSITE: _changed(taught, turned=True, swapped=True),
        }
        for kind in plan.kinds:
            task = plan.task(kind, member)
            if kind == COLD:
                run, _ = studies[member].searched
                yield _cut(run, task)
            else:
                yield _search(plan, member, task, _beliefs(priors[kind]))[0]


@dataclass(frozen=True, slots=True)
class _Played:
    """A member's study from nothing, and the prior that is made of it."""

    searched: tuple[Run, tuple[TrialRecord, ...]]
    prior: Prior

    @classmethod
    def of(cls, plan: FamilyPlan, member: int) -> _Played:
        """Search a member long enough both to teach and to be compared with."""
        length = max(plan.taught, plan.trials)
        task = Task(COLD, plan.workload(member), length)
        run, records = _search(plan, member, task, None)
        return cls((run, records), build_prior([_observed(run, records[: plan.taught], plan)]))


def _search(
    plan: FamilyPlan, member: int, task: Task, beliefs: Beliefs | None
) -> tuple[Run, tuple[TrialRecord, ...]]:
    compiler = plan.family.member(member)
    return play_with(task, compiler, SAMPLER, beliefs)


def _observed(run: Run, records: Sequence[TrialRecord], plan: FamilyPlan) -> ObservedStudy:
    baseline = next(record.value_ms for record in records if not len(record.route))
    name = run.task.workload.name
    knobs = plan.family.member(0).knobs
    return ObservedStudy(
        StudyEntry(id=name, name=name, metric="linf", epsilon="0.001"),
        {knob.name: knob.choices for knob in knobs},
        tuple(observation(record, baseline or math.nan) for record in records),
    )


def _beliefs(prior: Prior) -> Beliefs:
    """Full weight for every study: how families differ is what is being asked."""
    return believe(prior, tuple(Nearness(study, 1.0, ()) for study in prior.studies)).beliefs


def _cut(run: Run, task: Task) -> Run:
    """The beginning of a longer search: it would have been the same without its end."""
    count = task.trials
    return replace(
        run,
        task=task,
        shipped=run.shipped[:count],
        observed=run.observed[:count],
        costs=run.costs[:count],
        ask_seconds=run.ask_seconds[:count],
    )


def _changed(prior: Prior, *, turned: bool, swapped: bool = False) -> Prior:
    """A prior that misleads."""
    knobs = {}
    for name, knob in prior.knobs.items():
        values = {}
        for value, entry in knob.values.items():
            lines = {
                study: _misled(line, turned=turned, swapped=swapped)
                for study, line in entry.evidence.items()
            }
            values[value] = entry.model_copy(update={"evidence": lines})
        knobs[name] = knob.model_copy(update={"values": values})
    return prior.model_copy(update={"knobs": knobs})


def _misled(line: Evidence, *, turned: bool, swapped: bool) -> Evidence:
    effect = -line.effect if turned else line.effect
    if not swapped:
        return line.model_copy(update={"effect": effect})
    active = 1 - line.active
    if active > 0.5:
        effect = -OPPOSITE_SIZE
    return line.model_copy(update={"active": active, "effect": effect})
