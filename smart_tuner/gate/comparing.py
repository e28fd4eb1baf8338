"""Which comparison with the stored baseline is an honest one, and its outcome."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from smart_tuner.gate.facts import BACKEND, DEVICE, RUNTIME, SAME_WORK, differing
from smart_tuner.gate.judge import (
    LEAST_RUNS,
    Compared,
    against_runs,
    between_artefacts,
    over_default,
)
from smart_tuner.gate.measure import CannotCompare, SideBySide, median_ms, with_python
from smart_tuner.gate.outcome import Comparison
from smart_tuner.gate.sides import TakenOut

if TYPE_CHECKING:
    from collections.abc import Sequence

    from smart_tuner.gate.judge import Slowdown
    from smart_tuner.gate.measure import Round, Side
    from smart_tuner.gate.outcome import GateOptions
    from smart_tuner.gate.store import Kept

LATENCY_ROUNDS = 3
"""Rounds where the default ships: they give its latency, and runs differ more than rounds do."""

SHIPS, BASELINE, DEFAULT = "what ships now", "the stored engine", "the default"


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured of today's candidate.

    Attributes:
        comparison: Against the baseline.
        over_default: Rounds against the default; empty if the default ships.
        candidate_ms: Latency of the candidate, one figure a round.
    """

    comparison: Comparison
    over_default: tuple[float, ...]
    candidate_ms: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Comparing:
    """Compares what would ship with what was accepted before.

    Attributes:
        bench: Measures.
        options: Rounds and tolerance.
    """

    bench: SideBySide
    options: GateOptions

    def measure(
        self, now: Kept, out: TakenOut, before: Kept | None, before_out: TakenOut | None
    ) -> Measured:
        """Measure and compare.

        Args:
            now: The entry of what would ship.
            out: Its copy.
            before: The accepted entry; ``None`` if there is none.
            before_out: Its copy; ``None`` where its engine is not measured.

        Raises:
            TrialError: What would ship does not load or run.
        """
        entry = now.entry
        candidate = out.side(SHIPS, entry.candidate)
        has_gain = entry.candidate != entry.default
        is_same = before is not None and before.entry.id == entry.id
        judged: tuple[Round, ...] = ()
        compared: Comparison | None = None
        trouble = ""
        if before is not None and before_out is not None and not is_same:
            try:
                judged, compared = self._artefacts(candidate, before, before_out)
            except CannotCompare as error:
                trouble = str(error)
        against: tuple[Round, ...] = ()
        if has_gain or not judged:
            against = self._default(
                out.side(DEFAULT, entry.default), candidate, before, is_same=is_same
            )
        ratios = tuple(round_.log_ratio for round_ in against) if has_gain else ()
        latencies = tuple(round_.candidate_ms for round_ in (*judged, *against))
        if compared is None:
            compared = self._otherwise(now, before, ratios, against)
        if trouble:
            compared = replace(compared, sentence=f"{compared.sentence} ({trouble})")
        return Measured(compared, ratios, latencies)

    def _artefacts(
        self, candidate: Side, before: Kept, out: TakenOut
    ) -> tuple[tuple[Round, ...], Comparison]:
        """Both engines in one run.

        Raises:
            CannotCompare: The stored one does not load here any more.
        """
        python = self.options.previous_python
        old = TakenOut(out.entry, out.place, out.workload, with_python(out.options, python))
        side = old.side(BASELINE, before.entry.candidate)
        rounds = self.bench.rounds(side, candidate, self.options.rounds, self._is_settled)
        ratios = tuple(round_.log_ratio for round_ in rounds)
        where = f", run by {python}" if python else ""
        how = "built again from its stored model" if out.entry.sources else "loaded from its file"
        sentence = (
            f"What ships now against the stored engine of {before.entry.id} ({how}{where}), side "
            f"by side on this machine, {len(rounds)} rounds in fresh processes."
        )
        found = between_artefacts(ratios)
        return rounds, Comparison(Compared.ARTEFACTS, before.entry.id, sentence, found, ratios)

    def _is_settled(self, rounds: Sequence[Round]) -> bool:
        found = between_artefacts([round_.log_ratio for round_ in rounds])
        return found.is_settled(self.options.tolerance)

    def _default(
        self,
        default: Side,
        candidate: Side,
        before: Kept | None,
        *,
        is_same: bool,
    ) -> tuple[Round, ...]:
        """Rounds against the default; more than the first only where they are what is judged."""
        earlier = [run.over_default for run in before.runs if run.over_default] if before else []

        def is_settled(rounds: Sequence[Round]) -> bool:
            if not (is_same and earlier):
                return True
            today = [round_.log_ratio for round_ in rounds]
            return over_default(earlier, today).is_settled(self.options.tolerance)

        is_alone = default.request.route == candidate.request.route
        count = min(self.options.rounds, LATENCY_ROUNDS) if is_alone else self.options.rounds
        return self.bench.rounds(default, candidate, count, is_settled)

    def _otherwise(
        self,
        now: Kept,
        before: Kept | None,
        ratios: tuple[float, ...],
        rounds: tuple[Round, ...],
    ) -> Comparison:
        """The comparison where the two engines were not measured side by side."""
        if before is None:
            sentence = "Nothing was accepted for this model before: this run is what comes first."
            return Comparison(Compared.NOTHING, "", sentence)
        if reason := why_incomparable(before, now):
            return Comparison(Compared.NOTHING, before.entry.id, reason)
        earlier = [run.over_default for run in before.runs if run.over_default]
        if before.entry.id == now.entry.id and ratios and earlier:
            sentence = (
                "Nothing changed, so it is the same engine: its gain over the archived default, "
                f"measured now in {len(ratios)} rounds, against {_counted(len(earlier))}."
            )
            found = over_default(earlier, ratios)
            kind = Compared.OVER_DEFAULT
            return Comparison(kind, before.entry.id, sentence, found, ratios)
        return self._latency(before, now, rounds)

    def _latency(self, before: Kept, now: Kept, rounds: tuple[Round, ...]) -> Comparison:
        earlier = [
            sorted(run.candidate_ms)[len(run.candidate_ms) // 2]
            for run in before.runs
            if run.candidate_ms
        ]
        if not earlier:
            sentence = "The stored engine does not load here, and no latency of it is known."
            return Comparison(Compared.NOTHING, before.entry.id, sentence)
        changed = differing(before.entry.facts, now.entry.facts, (RUNTIME, "driver"))
        why = f"The {changed} changed, so" if changed else "Here"
        found = against_runs(earlier, median_ms(rounds))
        sentence = (
            f"{why} milliseconds of today are held against {_counted(len(earlier))} of the stored "
            "engine on the same kind of device."
        )
        if len(earlier) < LEAST_RUNS:
            sentence += (
                f" That is judged from {LEAST_RUNS} earlier runs on; this is for your eyes."
            )
        advice = self._advice(found, is_new_runtime=changed == RUNTIME)
        return Comparison(
            Compared.LATENCY,
            before.entry.id,
            sentence,
            found,
            advice=advice,
            doubt=_doubt(rounds),
        )

    def _advice(self, found: Slowdown, *, is_new_runtime: bool) -> str:
        """What helps where milliseconds of runs do not tell: rounds do not, runs differ more."""
        side_by_side = "compare side by side with `--previous-python`"
        other = side_by_side if is_new_runtime else "take a quieter machine"
        is_known = not math.isinf(found.error)
        needed = found.runs_that_tell(self.options.tolerance) if is_known else LEAST_RUNS
        more = max(0, (needed or 0) - found.samples)
        if not more:
            return other
        runs = f"store {more} more run{'s' * (more > 1)} of the stored engine"
        return f"{side_by_side}, or {runs}" if is_new_runtime else runs


def _doubt(rounds: Sequence[Round]) -> str:
    """That most rounds were disturbed: side by side that cancels, in milliseconds it does not."""
    # The last note names who was busy, if that was seen; those before it say how the latency moved.
    disturbed = [round_.notes[-1] for round_ in rounds if round_.notes]
    if 2 * len(disturbed) <= len(rounds):
        return ""
    what = disturbed[0].rstrip(".")
    return f"{len(disturbed)} of {len(rounds)} rounds were disturbed: {what}"


def why_incomparable(before: Kept, now: Kept) -> str:
    """Why two latencies mean different things; empty if they may be compared."""
    old, new = before.entry.facts, now.entry.facts
    fact = differing(old, new, (DEVICE, *SAME_WORK))
    if not fact:
        return ""
    what = "It runs on another device" if fact == DEVICE else f"The {fact} changed"
    if fact == BACKEND:
        what = "Another backend compiles it"
    return (
        f"{what}: latencies of {before.entry.id} are of other work, so nothing is compared and "
        "this run is the new baseline."
    )


def wants_stored_engine(before: Kept, now: Kept, previous_python: str) -> bool:
    """Whether the stored engine is measured beside today's: it must be what ran before.

    An engine that is built again by another runtime is another engine; the runtime of before is
    asked for it then, or nothing is.
    """
    if before.entry.id == now.entry.id or why_incomparable(before, now):
        return False
    is_same_runtime = before.entry.facts.get(RUNTIME) == now.entry.facts.get(RUNTIME)
    return is_same_runtime or bool(previous_python)


def _counted(runs: int) -> str:
    return "an earlier run" if runs == 1 else f"{runs} earlier runs"
