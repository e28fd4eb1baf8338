"""From losses and errors to outcomes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from smart_tuner.errors import (
    BuildError,
    ChildDied,
    ChildTimedOut,
    NotApplied,
    SmartTunerError,
)
from smart_tuner.trial.trial import TrialOutcome
from smart_tuner.validate.constraint import is_acceptable
from smart_tuner.validate.losses import worst
from smart_tuner.validate.pairs import deciding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from smart_tuner.validate.limits import LimitUse
    from smart_tuner.validate.losses import OutputLoss


def outcome_of(losses: Sequence[OutputLoss], limits: Sequence[LimitUse]) -> TrialOutcome:
    """Return FEASIBLE when every output is within its epsilon and every limit is kept."""
    is_kept = all(use.is_kept for use in limits)
    return outcome_of_losses(losses) if is_kept else TrialOutcome.INFEASIBLE


def describe(losses: Sequence[OutputLoss], limits: Sequence[LimitUse]) -> str:
    """Return why an engine is not acceptable, on one line; empty when it is."""
    reasons = [describe_losses(losses), *(str(use) for use in limits if not use.is_kept)]
    return "; ".join(reason for reason in reasons if reason)


def outcome_of_losses(losses: Sequence[OutputLoss]) -> TrialOutcome:
    """Return FEASIBLE when every output is within its epsilon."""
    return TrialOutcome.FEASIBLE if is_acceptable(losses) else TrialOutcome.INFEASIBLE


def is_worth_measuring(losses: Sequence[OutputLoss]) -> bool:
    """Whether the outputs have the right shapes and types, and are finite where they should."""
    return all(math.isfinite(loss.loss) for loss in losses)


def describe_losses(losses: Sequence[OutputLoss]) -> str:
    """Return why the losses are not acceptable, on one line; empty when they are."""
    if is_acceptable(losses):
        return ""
    loss = worst(losses)
    where = f"output {loss.output!r} (point {loss.point!r}, {_pair(loss)})"
    if loss.message:
        return f"{where}: {loss.message}"
    over = f"{loss.metric} loss {loss.loss:.3g} is over epsilon {loss.epsilon:.3g}"
    return f"{where}: {over}{_among(losses, loss)}"


def _pair(loss: OutputLoss) -> str:
    return f"pair {loss.pair!r}" if loss.pairs == 1 else loss.pair


def _among(losses: Sequence[OutputLoss], decides: OutputLoss) -> str:
    """What the other pairs say: the worst pair of a mean, the mean beside a worst pair."""
    whole = deciding(losses)
    if whole is None or whole.pairs == 1:
        return ""
    if decides.pairs > 1:
        return f"; worst pair {whole.worst_pair!r} with {whole.worst:.3g}"
    return f"; mean over {whole.pairs} pairs {whole.mean:.3g}"


def outcome_of_error(error: SmartTunerError, phase: str) -> TrialOutcome:
    """Return the outcome of a failure.

    Args:
        error: What was raised.
        phase: ``build``, ``validate`` or ``measure``.
    """
    if isinstance(error, ChildTimedOut):
        return TrialOutcome.TIMED_OUT
    if isinstance(error, NotApplied):
        return TrialOutcome.NOT_APPLIED
    if isinstance(error, BuildError) or phase == "build":
        return TrialOutcome.BUILD_FAILED
    return TrialOutcome.RUN_FAILED


def describe_error(error: SmartTunerError, phase: str) -> str:
    """Return why a route failed, on one line."""
    if isinstance(error, ChildDied | ChildTimedOut):
        doing = {"build": "building", "validate": "validating", "measure": "measuring"}
        return f"while {doing[phase]}: {error}"
    return str(error)
