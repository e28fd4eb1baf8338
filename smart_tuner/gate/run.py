"""One run of the gate, from a model and a store to an answer."""

from __future__ import annotations

import math
import re
import statistics
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from smart_tuner.errors import TrialError
from smart_tuner.gate.archive import REFERENCES, put
from smart_tuner.gate.comparing import Comparing, Measured, wants_stored_engine
from smart_tuner.gate.documents import SCHEMA_VERSION, Run
from smart_tuner.gate.facts import changes, facts_key
from smart_tuner.gate.measure import SideBySide
from smart_tuner.gate.outcome import Answer, GateOutcome
from smart_tuner.gate.sides import TakenOut, options_of, taken_out
from smart_tuner.gate.store import ENTRY_FILE, open_store, utc_now
from smart_tuner.gate.tuning import Today, look, route_text, tuned
from smart_tuner.model.files import file_digest
from smart_tuner.model.public import PREFIX
from smart_tuner.model.scratch import scratch_folder
from smart_tuner.model.store import read_workload
from smart_tuner.study.progress.events import Note, PhaseStarted

if TYPE_CHECKING:
    from pathlib import Path

    from smart_tuner.gate.outcome import Comparison, GateOptions
    from smart_tuner.gate.store import Kept, Store
    from smart_tuner.model.workload import Workload
    from smart_tuner.study.progress.events import Listener
    from smart_tuner.study.setup.settings import StudySettings

PAIRS = 10
"""Pairs of blocks of a round; even, so that drift cancels."""

NO_ENTRY = "the store has no engine for this model yet"
ASKED = "asked for with --retune"


@dataclass(frozen=True, slots=True)
class _Found:
    """What the store knows.

    Attributes:
        store: The store.
        exact: The newest entry with today's facts.
        before: What an engine of today is compared with.
        due: Why retuning is due.
    """

    store: Store
    exact: Kept | None
    before: Kept | None
    due: tuple[str, ...]


def run_gate(options: GateOptions, settings: StudySettings, listener: Listener) -> GateOutcome:
    """Tune if something changed, verify what ships, compare it with the baseline, archive it.

    Args:
        options: What the user decided about the gate.
        settings: The study's settings.
        listener: Hears what happens.

    Raises:
        UserInputError: There is no store, something in it is damaged, or a setting is wrong.
        EnvironmentNotFit: The store is read-only, or this machine lacks something.
    """
    started = time.monotonic()
    store = open_store(options.store, init=options.init)
    if options.archive and not options.dry_run:
        store.check_writable()
    name = options.name or name_of(settings.model)
    with scratch_folder() as place:
        listener(PhaseStarted("prepare", f"Looking whether {name} has changed"))
        today = look(settings, place / "inputs")
        found = _look_up(store, name, today, retune=options.retune)
        for line in found.due:
            listener(Note(f"Retuning is due: {line}"))
        if options.dry_run:
            return GateOutcome(Answer.DRY, name, found.due, options.tolerance)
        job = _job(options, today, found, (name, place, listener))
        outcome = job.decide()
    return replace(outcome, seconds=time.monotonic() - started)


def _job(
    options: GateOptions, today: Today, found: _Found, around: tuple[str, Path, Listener]
) -> _Job:
    """Take the engine that the store has, or tune one."""
    name, place, listener = around
    if found.exact is not None and not found.due:
        return _Job(
            options, today, found, found.exact, is_new=False, place=place, listener=listener
        )
    last = found.before or found.exact
    work = place / "tuning"
    work.mkdir()
    now = tuned(today, name, last, work, listener)
    return _Job(options, today, found, now, is_new=True, place=place, listener=listener)


def name_of(model: Path) -> str:
    """What a model is called when the user names nothing: its file without the ending."""
    text = str(model).removeprefix(PREFIX)
    stem = text.rsplit("/", 1)[-1].rsplit(".", 1)[0]
    return re.sub(r"[^A-Za-z0-9._-]+", "-", stem).strip("-._")[:40] or "model"


def _look_up(store: Store, name: str, today: Today, *, retune: bool) -> _Found:
    key = facts_key(today.facts)
    exact, before = store.exact(name, key), store.baseline(name, today.facts)
    due: tuple[str, ...] = ()
    if exact is None:
        last = before or store.newest(name)
        due = changes(last.entry.facts, today.facts) if last else (NO_ENTRY,)
    elif retune:
        due = (ASKED,)
    for kept in filter(None, (exact, before)):
        kept.check_files()
    return _Found(store, exact, before, due)


@dataclass(frozen=True, slots=True)
class _Job:
    """What ships, to be measured and kept.

    Attributes:
        options: What the user decided.
        today: What the pipeline runs on.
        found: What the store knows.
        now: The entry of what ships, in the store or ready to go there.
        is_new: Whether it was tuned just now.
        place: A folder of our own.
        listener: Hears what happens.
    """

    options: GateOptions
    today: Today
    found: _Found
    now: Kept
    is_new: bool
    place: Path
    listener: Listener

    def decide(self) -> GateOutcome:
        """Verify, compare, archive."""
        self.listener(PhaseStarted("verify", "Checking accuracy and speed of what ships"))
        entry = self.now.entry
        outcome = GateOutcome(
            Answer.PASSED,
            entry.name,
            self.found.due,
            self.options.tolerance,
            entry="" if self.is_new else entry.id,
            tuned=entry.sentence if self.is_new else "",
            route=route_text(entry),
        )
        out = self._take_out(self.now, None, "now")
        bench = SideBySide(
            workload=out.workload,
            platform=self.today.platform,
            rule=self.today.plan.goal.fixed(PAIRS),
            folder=self.place / "rounds",
            listener=self.listener,
        )
        try:
            if broken := bench.broken_epsilon(out.side("what ships", entry.candidate)):
                broken = f"what ships is not accurate enough: {broken}"
                return replace(outcome, answer=Answer.BROKEN, broken=broken)
            measured = self._measure(bench, out)
        except TrialError as error:
            broken = f"what ships does not work here: {str(error).rstrip('.')}"
            return replace(outcome, answer=Answer.BROKEN, broken=broken)
        return self._archived(self._judged(outcome, measured), measured)

    def _take_out(self, kept: Kept, workload: Workload | None, name: str) -> TakenOut:
        """Copy an entry; its own inputs are measured unless others are given."""
        is_ours = self.is_new and kept is self.now
        home = self.today.plan.model.path.parent if is_ours else None
        place = taken_out(kept, self.found.store, self.place / name, home)
        if workload is None:
            workload = read_workload(self.today.plan.model, place / REFERENCES)
        return TakenOut(kept.entry, place, workload, options_of(kept.entry, self.today.plan))

    def _measure(self, bench: SideBySide, out: TakenOut) -> Measured:
        before, python = self.found.before, self.options.previous_python
        before_out = None
        if before is not None and wants_stored_engine(before, self.now, python):
            before_out = self._take_out(before, out.workload, "before")
        comparing = Comparing(bench, self.options)
        return comparing.measure(self.now, out, before, before_out)

    def _judged(self, outcome: GateOutcome, measured: Measured) -> GateOutcome:
        """Only what does not look slower becomes what later runs are compared with."""
        slowdown = measured.comparison.slowdown
        answer = self._answer(measured.comparison)
        looks_slower = slowdown is not None and slowdown.value > 1 + self.options.tolerance
        is_safe = answer is Answer.PASSED or (answer is Answer.NOT_COMPARED and not looks_slower)
        is_safe = is_safe and not self.options.candidate
        ratios = measured.over_default
        return replace(
            outcome,
            answer=answer,
            comparison=measured.comparison,
            candidate_ms=statistics.median(measured.candidate_ms),
            over_default=math.exp(-statistics.mean(ratios)) if ratios else None,
            accepted=self.options.archive and (self.options.accept or is_safe),
        )

    def _answer(self, comparison: Comparison) -> Answer:
        slowdown = comparison.slowdown
        if slowdown is None or math.isinf(slowdown.high):
            return Answer.NOT_COMPARED
        if slowdown.is_regression(self.options.tolerance):
            return Answer.UNCLEAR if comparison.doubt else Answer.SLOWER
        is_settled = slowdown.is_settled(self.options.tolerance)
        return Answer.PASSED if is_settled else Answer.UNCLEAR

    def _archived(self, outcome: GateOutcome, measured: Measured) -> GateOutcome:
        """Put the entry and this run into the store; a slower one is kept, but not accepted."""
        if not self.options.archive:
            return outcome
        store, entry = self.found.store, self.now.entry
        if self.is_new:
            put(store, entry, self.now.folder, self.today.plan.model.path)
        run = Run(
            schema_version=SCHEMA_VERSION,
            created=utc_now().isoformat(timespec="microseconds"),
            accepted=outcome.accepted,
            regression=outcome.answer is Answer.SLOWER,
            sentence=f"{outcome.sentence} {measured.comparison.sentence}",
            over_default=list(measured.over_default),
            candidate_ms=list(measured.candidate_ms),
        )
        store.add_run(entry.id, run)
        digest = file_digest(store.entries / entry.id / ENTRY_FILE)
        return replace(outcome, entry=entry.id, manifest_sha256=digest)
