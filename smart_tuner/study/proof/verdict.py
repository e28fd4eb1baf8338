"""The verdict in one sentence."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from smart_tuner.knobs.text import many
from smart_tuner.storages.history import outcome_key
from smart_tuner.study.proof.gain import Gain
from smart_tuner.study.proof.result import TuneResult, Verdict
from smart_tuner.study.proof.wording import ONCE, Candidates, builds_words, sure_words
from smart_tuner.trial.trial import TrialOutcome
from smart_tuner.validate.pairs import deciding, over_pairs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from smart_tuner.storages.history import TrialRecord
    from smart_tuner.study.proof.confirm import Confirmed


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a verdict rests on.

    Attributes:
        study: The study folder.
        records: Finished trials.
        confirmed: The route that was rebuilt; ``None`` if no route was worth it.
        bare_gain: Gain over the compiler's bare default, when the study has a base.
        held_out_failure: Why the winner fails on held-out inputs; empty if it does not.
        synthetic: Inputs were made up.
        min_gain: The smallest gain that ships.
        max_regression: The largest slow-down at one workload point.
        spent_seconds: Wall-clock seconds of all sessions.
        needed_seconds: The budget that confirming the fastest route would take, if the one at
            hand was too small for that; else 0.
        notes: What the user should hear.
        measured: What the gain is one of, where that is not the median end-to-end latency.
        within: The accuracy constraint in words.
        rebuilt: Gain of the best fresh build, where none was confirmed.
    """

    study: Path
    records: tuple[TrialRecord, ...]
    confirmed: Confirmed | None
    bare_gain: Gain | None
    held_out_failure: str
    synthetic: bool
    min_gain: float
    max_regression: float
    spent_seconds: float
    needed_seconds: float = 0.0
    notes: tuple[str, ...] = ()
    measured: str = ""
    within: str = "within epsilon"
    rebuilt: Gain | None = None


def decide(evidence: Evidence) -> TuneResult:
    """Turn evidence into a verdict."""
    confirmed = evidence.confirmed
    counts = Counter(outcome_key(record) for record in evidence.records)
    ships = (
        confirmed is not None
        and not evidence.held_out_failure
        and confirmed.ships(evidence.min_gain, evidence.max_regression)
    )
    result = TuneResult(
        verdict=_verdict(evidence, ships=ships),
        sentence="",
        route=str(confirmed.route) if confirmed and ships else "",
        study=evidence.study,
        min_gain=evidence.min_gain,
        max_regression=evidence.max_regression,
        route_gain=confirmed.route_gain if confirmed else None,
        engine_gain=confirmed.engine_gain if confirmed else None,
        sustained_gain=confirmed.sustained_gain if confirmed else None,
        bare_gain=evidence.bare_gain if ships else None,
        indicative=bool(confirmed and confirmed.indicative),
        provisional=evidence.synthetic,
        trials=dict(counts),
        spent_seconds=evidence.spent_seconds,
        notes=evidence.notes,
        accuracy=over_pairs(confirmed.shipped.trial.losses) if confirmed else (),
    )
    finding = _won(confirmed, evidence) if confirmed and ships else _lost(evidence)
    said = [f"{finding}."]
    if confirmed and ships:
        said += _doubts(result, confirmed)
    elif result.verdict is Verdict.UNDECIDED:
        said = [f"{finding}; continue it with a larger --budget."]
    if evidence.measured and _tried(evidence):
        said.append(f"Measured: {evidence.measured}.")
    said += _disturbance(confirmed)
    return replace(result, finding=finding, sentence=" ".join(said))


def _won(confirmed: Confirmed, evidence: Evidence) -> str:
    knobs, gain = len(confirmed.route), confirmed.route_gain
    return (
        f"{gain.value:.3f}x faster than the default "
        f"({sure_words(gain, builds_words(gain.samples))}), {evidence.within}, with "
        f"{many(knobs, 'knob')} set"
    )


def _doubts(result: TuneResult, confirmed: Confirmed) -> Iterator[str]:
    if loss := deciding(confirmed.shipped.trial.losses):
        yield f"Largest loss: {loss}."
    if result.indicative:
        yield "Indicative only: the budget allowed fewer than five builds a side."
    if result.provisional:
        yield "Provisional: the inputs were synthetic."


def _disturbance(confirmed: Confirmed | None) -> Iterator[str]:
    """A caution when the machine was not quiet: the gain may be one of a busy machine only."""
    if confirmed is None or not confirmed.disturbed:
        return
    measured = confirmed.route_gain.samples
    yield (
        f"Other work or drift disturbed {confirmed.disturbed} of {measured} of these "
        "measurements: repeat it on a quiet machine."
    )


def _verdict(evidence: Evidence, *, ships: bool) -> Verdict:
    if ships:
        return Verdict.WINNER
    is_undecided = evidence.needed_seconds or not _tried(evidence)
    return Verdict.UNDECIDED if is_undecided else Verdict.DEFAULT_IS_BEST


def _tried(evidence: Evidence) -> int:
    """Routes besides the default that were tried."""
    return sum(len(record.route) > 0 for record in evidence.records)


def _routes(evidence: Evidence) -> str:
    tried = _tried(evidence)
    return "1 route" if tried == 1 else f"{tried} routes"


def _broke(evidence: Evidence) -> str:
    """What befell routes that are not feasible; limits are named where there are some."""
    has_limits = any(record.over_limits for record in evidence.records)
    return "failed or broke epsilon or a limit" if has_limits else "failed or broke epsilon"


def _lost(evidence: Evidence) -> str:
    confirmed = evidence.confirmed
    if confirmed is None:
        return _none_confirmed(evidence)
    route = f"The default ships: the fastest route ({confirmed.route})"
    if confirmed.failures:
        return f"{route} {_broke(evidence)} in {confirmed.failures} of its fresh builds"
    deciding_gain = confirmed.deciding_gain
    if deciding_gain.low < evidence.min_gain:
        is_sustained = deciding_gain is confirmed.sustained_gain
        source = "under sustained load" if is_sustained else builds_words(deciding_gain.samples)
        return _none(evidence, deciding_gain, source)
    if evidence.held_out_failure:
        return f"{route} fails on held-out inputs: {evidence.held_out_failure}"
    point, gain = confirmed.worst_point
    return f"{route} gains {confirmed.route_gain}, but slows point {point} to {gain:.3f}x"


def _none_confirmed(evidence: Evidence) -> str:
    tried = _tried(evidence)
    if not tried:
        return "Undecided: the budget ended before any route besides the default was tried"
    if evidence.needed_seconds:
        return _unconfirmed(evidence)
    if not _compared(evidence):
        all_of = "the only route" if tried == 1 else f"all {tried} routes"
        return f"The default ships: {all_of} that {'was' if tried == 1 else 'were'} tried {_broke(evidence)}"
    if evidence.rebuilt is not None:
        return _none(evidence, evidence.rebuilt, builds_words(1))
    return _none(evidence, _fastest(evidence.records), ONCE)


def _none(evidence: Evidence, best: Gain | None, source: str) -> str:
    compared, tried = _compared(evidence), _tried(evidence)
    return Candidates(best, source, compared, tried, _broke(evidence)).finding(evidence.min_gain)


def _compared(evidence: Evidence) -> int:
    """Routes besides the default that ran within epsilon and every limit."""
    return sum(
        record.outcome is TrialOutcome.FEASIBLE and len(record.route) > 0
        for record in evidence.records
    )


def _unconfirmed(evidence: Evidence) -> str:
    fastest = _fastest(evidence.records)
    seen = (
        f"was measured at {fastest.value:.3f}x ({sure_words(fastest, ONCE)})"
        if fastest
        else "seems faster"
    )
    return (
        f"Undecided: the best of {_routes(evidence)} {seen}, but the builds that would prove it "
        f"need --budget {math.ceil(evidence.needed_seconds / 60)}m or more"
    )


def _fastest(records: tuple[TrialRecord, ...]) -> Gain | None:
    """The search's own figure of the fastest route that changes the engine, if it has an interval.

    One measurement, and the luckiest of many: high rather than low, which suits a "none".
    """
    default_ms = next((record.value_ms for record in records if record.unchanged), None)
    changed = [
        (record.value_ms, record.half_width)
        for record in records
        if record.outcome is TrialOutcome.FEASIBLE and not record.unchanged
        if record.value_ms and record.half_width is not None
    ]
    if not default_ms or not changed:
        return None
    value_ms, half_width = min(changed)
    return Gain.from_log_ratio(math.log(value_ms / default_ms), half_width, 1)
