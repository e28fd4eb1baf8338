"""Reads a study back as light records."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from optuna.trial import TrialState

from smart_tuner.route.build_route import BuildRoute
from smart_tuner.storages.keys import (
    ACCURACY,
    APPLIED,
    BUILT,
    FINGERPRINT,
    FOLDER,
    HALF_WIDTH,
    LIMIT_KEYS,
    LOSSES,
    MEASURED,
    MESSAGE,
    NO_EFFECT,
    OUTCOME,
    OVER_LIMIT,
    RAN,
    REASON,
    SECONDS,
    UNCHANGED,
)
from smart_tuner.trial.trial import TrialOutcome
from smart_tuner.validate.losses import OutputLoss
from smart_tuner.validate.pairs import pairs_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import optuna
    from optuna.trial import FrozenTrial


FINISHED = (TrialState.COMPLETE, TrialState.PRUNED)


@dataclass(frozen=True, slots=True)
class TrialRecord:
    """One finished trial, as loop and reports need it.

    Attributes:
        number: Trial number in the study.
        route: What was tried.
        outcome: How it ended.
        value_ms: Latency in milliseconds; ``None`` unless it was measured or is the baseline's
            by fingerprint.
        violation: log10(loss / epsilon) of the worst output; ``None`` if it was never reached.
        fingerprint: Of the engine; empty if there is none.
        unchanged: The engine is the baseline's.
        half_width: Half of the 95 % interval on the log ratio, if known.
        seconds: Wall-clock seconds by phase.
        message: Why it ended so.
        reason: Why it was proposed.
        folder: Where log and result lie, relative to the study folder.
        over_limits: Names of the limits beside accuracy that it breaks.
        loss_rows: Its largest losses as ``storages.tell`` keeps them; ``kept_losses`` reads them.
    """

    number: int
    route: BuildRoute
    outcome: TrialOutcome
    value_ms: float | None = None
    violation: float | None = None
    fingerprint: str = ""
    unchanged: bool = False
    half_width: float | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)
    message: str = ""
    reason: str = ""
    folder: str = ""
    over_limits: tuple[str, ...] = ()
    loss_rows: Sequence[Sequence[Any]] = ()


def finished_trials(study: optuna.Study) -> tuple[TrialRecord, ...]:
    """Every trial that ended with an outcome, by number.

    Trials in flight, queued ones and those closed as FAIL (interrupted) are left out. Trials that
    others put into the study count too: their outcome is read from state and constraints.
    """
    return tuple(record_of(trial) for trial in study.get_trials(deepcopy=False, states=FINISHED))


def outcome_key(record: TrialRecord) -> str:
    """The word under which a trial is counted: its outcome, or what says more."""
    if record.over_limits and (record.violation is None or record.violation <= 0):
        return OVER_LIMIT
    return NO_EFFECT if record.unchanged else record.outcome.value


def kept_losses(record: TrialRecord) -> tuple[OutputLoss, ...]:
    """The largest losses of a trial, the worst first; all of them if there are at most 64."""
    return tuple(
        OutputLoss(point, pair, output, metric, float(loss), float(epsilon), pairs=pairs_in(pair))
        for point, pair, output, metric, loss, epsilon in record.loss_rows
    )


def best_feasible(records: Iterable[TrialRecord]) -> TrialRecord | None:
    """The fastest feasible trial, the earliest of equals; ``None`` if there is none."""
    feasible = (
        record
        for record in records
        if record.outcome is TrialOutcome.FEASIBLE and record.value_ms is not None
    )
    return min(feasible, key=lambda record: (record.value_ms, record.number), default=None)


def record_of(trial: FrozenTrial) -> TrialRecord:
    """A finished trial as a record."""
    attributes = trial.user_attrs
    defaults = {
        name: getattr(distribution, "choices", (trial.params[name],))[0]
        for name, distribution in trial.distributions.items()
    }
    is_known = attributes.get(MEASURED, True) or attributes.get(UNCHANGED, False)
    return TrialRecord(
        number=trial.number,
        route=BuildRoute.of(trial.params, defaults),
        outcome=_outcome(trial),
        value_ms=trial.value if is_known else None,
        violation=trial.constraints.get(ACCURACY),
        over_limits=tuple(key for key in LIMIT_KEYS if trial.constraints.get(key, 0.0) > 0),
        fingerprint=str(attributes.get(FINGERPRINT, "")),
        unchanged=bool(attributes.get(UNCHANGED, False)),
        half_width=attributes.get(HALF_WIDTH),
        seconds=attributes.get(SECONDS, {}),
        message=str(attributes.get(MESSAGE, "")),
        reason=str(attributes.get(REASON, "")),
        folder=str(attributes.get(FOLDER, "")),
        loss_rows=attributes.get(LOSSES, ()),
    )


def _outcome(trial: FrozenTrial) -> TrialOutcome:
    told = trial.user_attrs.get(OUTCOME)
    if told in {outcome.value for outcome in TrialOutcome}:
        return TrialOutcome(told)
    constraints = trial.constraints
    if trial.state is TrialState.COMPLETE:
        is_feasible = all(value <= 0 for value in constraints.values())
        return TrialOutcome.FEASIBLE if is_feasible else TrialOutcome.INFEASIBLE
    for key, outcome in ((BUILT, TrialOutcome.BUILD_FAILED), (APPLIED, TrialOutcome.NOT_APPLIED)):
        if constraints.get(key, 0.0) > 0:
            return outcome
    is_run_failure = constraints.get(RAN, 0.0) > 0
    return TrialOutcome.RUN_FAILED if is_run_failure else TrialOutcome.BUILD_FAILED
