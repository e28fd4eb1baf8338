"""Tells Optuna how a trial ended.

Failed trials are invisible to Optuna's samplers, so nothing that we learned from is told as FAIL:

* BUILD_FAILED, RUN_FAILED, TIMED_OUT, NOT_APPLIED: PRUNED, without a value.
* FEASIBLE, and INFEASIBLE with a latency: COMPLETE with its latency in milliseconds.
* INFEASIBLE without a latency (wrong shape, never timed): COMPLETE, since ``accuracy`` is known
  and that is what samplers learn from. Optuna wants a value; it gets the baseline's, which says
  "no effect" to a latency model, and the attribute ``measured`` is false. Such a trial cannot be
  the best one: it is infeasible.
* A latency that is NaN, infinite or not above zero is no latency: RUN_FAILED, with the reason.

Constraints are 1.0 (broken) or 0.0 (kept) for ``built``, ``ran`` and ``applied``; ``accuracy`` is
:func:`smart_tuner.validate.losses.violation`. A key that was never reached stays unset, and a
COMPLETE trial has all four. The limits of a study follow, log10(figure / limit) within +-6, the
same on every COMPLETE trial. The state is written last, so a trial is told once or not at all.

User attributes are plain JSON: ``outcome``, ``message``, ``engine_fingerprint``, ``losses`` (rows
of point, pair, output, metric, loss, epsilon; the worst 64; infinities as text), ``half_width``
(of the log ratio; null if unknown), ``seconds``, ``unchanged``, ``measured``, ``folder`` and,
where there are limits, ``limits`` (rows of name, figure, limit);
``route`` (canonical text) and ``reason`` (of the proposal) were set when the trial was asked for.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from optuna.trial import TrialState

from smart_tuner.storages.gathering import one_append
from smart_tuner.storages.keys import (
    APPLIED,
    BUILT,
    CONSTRAINT_KEYS,
    FINGERPRINT,
    FOLDER,
    HALF_WIDTH,
    LIMITS,
    LOSSES,
    MEASURED,
    MESSAGE,
    OUTCOME,
    RAN,
    SECONDS,
    UNCHANGED,
)
from smart_tuner.trial.trial import TrialOutcome
from smart_tuner.validate.constraint import is_acceptable
from smart_tuner.validate.losses import violation

if TYPE_CHECKING:
    from collections.abc import Mapping

    import optuna
    from optuna.trial import FrozenTrial

    from smart_tuner.measure.latency import Comparison
    from smart_tuner.trial.trial import Trial
    from smart_tuner.validate.limits import LimitUse
    from smart_tuner.validate.losses import OutputLoss

BROKEN, KEPT = 1.0, 0.0
WORST_VIOLATION = 6.0
SMALLEST_VIOLATION = 1e-9
MESSAGE_LENGTH = 500
LOSS_ROWS = 64
_MISSING = object()


def tell_trial(
    study: optuna.Study,
    optuna_trial: optuna.Trial,
    trial: Trial,
    baseline_ms: float,
    weights: Mapping[str, float],
    *,
    folder: str = "",
) -> FrozenTrial:
    """Tell the study how a running trial ended, in one append.

    A trial that is finished already stays as it is, so telling a result again on resume is safe.

    Args:
        study: The study.
        optuna_trial: The running trial, from ``ask_trial`` or ``running_trials``.
        trial: What came out.
        baseline_ms: The study's frozen baseline latency.
        weights: Weight by workload point.
        folder: Where log and result lie, relative to the study folder.

    Returns:
        The finished trial as Optuna keeps it.

    Raises:
        EnvironmentNotFit: It could not be written; the trial is still running in the journal.
        StudyBusy: Another process held the journal for a minute.
    """
    outcome, message, value = _verdict(trial, baseline_ms, weights)
    attributes = _attributes(trial, weights)
    attributes |= {OUTCOME: outcome.value, MESSAGE: message[:MESSAGE_LENGTH], FOLDER: folder}
    attributes[MEASURED] = bool(trial.comparisons) and _is_complete(outcome)
    with one_append(study):
        frozen = study.get_trials(deepcopy=False)[optuna_trial.number]
        if not frozen.state.is_finished():
            _set_constraints(optuna_trial, constraints_of(trial, outcome))
            for key, attribute in attributes.items():
                if frozen.user_attrs.get(key, _MISSING) != attribute:
                    optuna_trial.set_user_attr(key, attribute)
            if _is_complete(outcome):
                study.tell(optuna_trial, value)
            else:
                study.tell(optuna_trial, state=TrialState.PRUNED)
    return study.get_trials(deepcopy=False)[optuna_trial.number]


def value_of(trial: Trial, baseline_ms: float, weights: Mapping[str, float]) -> float | None:
    """Milliseconds of a trial: baseline times exp(weighted mean of the points' log ratios).

    Returns:
        ``None`` if a point was not measured or the result is not finite and above zero.
    """
    if trial.unchanged:
        return baseline_ms
    ratios = {comparison.point: comparison.log_ratio for comparison in trial.comparisons}
    if not weights or not weights.keys() <= ratios.keys():
        return None
    total = math.fsum(weight * float(ratios[point]) for point, weight in weights.items())
    try:
        value = baseline_ms * math.exp(total / math.fsum(weights.values()))
    except OverflowError:
        return None
    return value if math.isfinite(value) and value > 0 else None


def constraints_of(trial: Trial, outcome: TrialOutcome) -> dict[str, float]:
    """Constraint values by key, in the order of ``CONSTRAINT_KEYS``; never NaN or infinite.

    Limits follow where the study has some.
    """
    match outcome:
        case TrialOutcome.FEASIBLE | TrialOutcome.INFEASIBLE:
            figures = (KEPT, KEPT, KEPT, _accuracy(trial, outcome))
            named = zip(CONSTRAINT_KEYS, figures, strict=True)
            return {**dict(named), **{use.name: _excess(use) for use in trial.limits}}
        case TrialOutcome.NOT_APPLIED:
            return ({BUILT: KEPT} if trial.engine else {}) | {APPLIED: BROKEN}
        case TrialOutcome.BUILD_FAILED:
            return {BUILT: BROKEN}
        case TrialOutcome.TIMED_OUT if trial.engine is None:
            return {BUILT: BROKEN}
        case TrialOutcome.RUN_FAILED | TrialOutcome.TIMED_OUT:
            return {BUILT: KEPT, RAN: BROKEN, APPLIED: KEPT}


def _excess(use: LimitUse) -> float:
    return min(use.excess, KEPT) if use.is_kept else max(use.excess, SMALLEST_VIOLATION)


def _accuracy(trial: Trial, outcome: TrialOutcome) -> float:
    """The violation, on the side of zero where the outcome is, unless a limit alone is broken."""
    is_over_limit = not all(use.is_kept for use in trial.limits)
    if outcome is TrialOutcome.FEASIBLE or (is_over_limit and is_acceptable(trial.losses)):
        return min(violation(trial.losses), KEPT) if trial.losses else KEPT
    worst = violation(trial.losses) if trial.losses else WORST_VIOLATION
    return max(worst, SMALLEST_VIOLATION)


def _verdict(
    trial: Trial, baseline_ms: float, weights: Mapping[str, float]
) -> tuple[TrialOutcome, str, float | None]:
    """Outcome, message and value to tell; an unusable latency turns into RUN_FAILED."""
    if not _is_complete(trial.outcome):
        return trial.outcome, trial.message, None
    value = value_of(trial, baseline_ms, weights)
    if value is not None:
        return trial.outcome, trial.message, value
    if trial.outcome is TrialOutcome.INFEASIBLE and not trial.comparisons:
        return trial.outcome, trial.message, baseline_ms
    return TrialOutcome.RUN_FAILED, _unusable(trial.comparisons, weights), None


def _unusable(comparisons: tuple[Comparison, ...], weights: Mapping[str, float]) -> str:
    ratios = {comparison.point: comparison.log_ratio for comparison in comparisons}
    missing = [point for point in weights if point not in ratios]
    if missing:
        return f"no latency was measured at {', '.join(missing)}"
    figures = ", ".join(f"{point}: {ratio}" for point, ratio in ratios.items())
    return f"the measured latency is not a positive number (log ratio at {figures})"


def _attributes(trial: Trial, weights: Mapping[str, float]) -> dict[str, object]:
    rows = sorted(trial.losses, key=_badness, reverse=True)[:LOSS_ROWS]
    limits = [[use.name, use.figure, use.limit] for use in trial.limits]
    return {
        **({LIMITS: limits} if limits else {}),
        FINGERPRINT: trial.engine.fingerprint if trial.engine else "",
        LOSSES: [_loss_row(loss) for loss in rows],
        HALF_WIDTH: _half_width(trial.comparisons, weights),
        SECONDS: {phase: float(span) for phase, span in trial.seconds.items()},
        UNCHANGED: bool(trial.unchanged),
    }


def _loss_row(loss: OutputLoss) -> list[object]:
    figures = (_plain(float(loss.loss)), _plain(float(loss.epsilon)))
    return [loss.point, loss.pair, loss.output, loss.metric, *figures]


def _plain(figure: float) -> float | str:
    return figure if math.isfinite(figure) else str(figure)


def _badness(loss: OutputLoss) -> float:
    if loss.epsilon > 0 and not math.isnan(loss.loss):
        return loss.loss / loss.epsilon
    return 0.0 if loss.loss == 0 else math.inf


def _half_width(comparisons: tuple[Comparison, ...], weights: Mapping[str, float]) -> float | None:
    """Half width of the weighted mean's interval, the points being independent."""
    widths = {comparison.point: float(comparison.half_width) for comparison in comparisons}
    if not weights or not weights.keys() <= widths.keys():
        return None
    squares = math.fsum((weight * widths[point]) ** 2 for point, weight in weights.items())
    width = math.sqrt(squares) / math.fsum(weights.values())
    return width if math.isfinite(width) else None


def _set_constraints(optuna_trial: optuna.Trial, constraints: Mapping[str, float]) -> None:
    """Set what is not set yet: an append that was cut short may have left some."""
    present = optuna_trial.constraints
    for key, value in constraints.items():
        if key not in present:
            optuna_trial.set_constraint(key, value)


def _is_complete(outcome: TrialOutcome) -> bool:
    return outcome in (TrialOutcome.FEASIBLE, TrialOutcome.INFEASIBLE)
