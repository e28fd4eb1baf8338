"""The verdict in one sentence."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from smart_tuner.storages.history import outcome_key
from smart_tuner.study.gain import Gain
from smart_tuner.study.result import TuneResult, Verdict
from smart_tuner.trial.trial import TrialOutcome
from smart_tuner.validate.pairs import deciding, over_pairs

if TYPE_CHECKING:
    from pathlib import Path

    from smart_tuner.storages.history import TrialRecord
    from smart_tuner.study.confirm import Confirmed


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
    sentence = _won(result, confirmed) if confirmed and ships else _lost(evidence)
    about = f" Measured: {evidence.measured}." if evidence.measured and _tried(evidence) else ""
    return replace(result, sentence=sentence + about + _disturbance(confirmed))


def _won(result: TuneResult, confirmed: Confirmed) -> str:
    knobs = len(confirmed.route)
    builds = confirmed.route_gain.samples
    text = (
        f"{confirmed.route_gain} faster than the default over {builds} fresh builds a side, "
        f"with {knobs} {'knob' if knobs == 1 else 'knobs'}: {confirmed.route}."
    )
    if loss := deciding(confirmed.shipped.trial.losses):
        text += f" Largest loss: {loss}."
    if result.indicative:
        text += " Indicative only: the budget allowed fewer than five builds a side."
    if result.provisional:
        text += " Provisional: the inputs were synthetic."
    return text


def _disturbance(confirmed: Confirmed | None) -> str:
    """A caution when the machine was not quiet: the gain may be one of a busy machine only."""
    if confirmed is None or not confirmed.disturbed:
        return ""
    measured = confirmed.route_gain.samples
    return (
        f" Other work or drift disturbed {confirmed.disturbed} of {measured} of these "
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
        return f"{route} {_broke(evidence)} in {confirmed.failures} of its fresh builds."
    deciding = confirmed.deciding_gain
    if deciding.low < evidence.min_gain:
        best = f"the best of {_routes(evidence)} gives {deciding}"
        if deciding is confirmed.sustained_gain:
            best = f"under sustained load {best}"
        return f"The default is best here: {best}, which does not prove {evidence.min_gain:g}x."
    if evidence.held_out_failure:
        return f"{route} fails on held-out inputs: {evidence.held_out_failure}."
    point, gain = confirmed.worst_point
    return f"{route} gains {confirmed.route_gain}, but slows point {point} to {gain:.3f}x."


def _none_confirmed(evidence: Evidence) -> str:
    if not _tried(evidence):
        return (
            "Undecided: the budget ended before any route besides the default was tried; "
            "continue with a larger --budget or --trials."
        )
    if evidence.needed_seconds:
        return _unconfirmed(evidence)
    failed = sum(record.outcome is not TrialOutcome.FEASIBLE for record in evidence.records)
    also = f" ({failed} of them {_broke(evidence)})" if failed else ""
    need = f"{evidence.min_gain:g}x"
    fastest = _fastest(evidence.records)
    seen = f"; the fastest was measured at {fastest}" if fastest else ""
    return f"The default is best here: none of {_routes(evidence)}{also} reaches {need}{seen}."


def _unconfirmed(evidence: Evidence) -> str:
    fastest = _fastest(evidence.records)
    seen = f"was measured at {fastest}" if fastest else "seems faster"
    return (
        f"Undecided: the best of {_routes(evidence)} {seen}, but the budget has no room for the "
        "builds that would prove it; continue with "
        f"--budget {math.ceil(evidence.needed_seconds / 60)}m."
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
