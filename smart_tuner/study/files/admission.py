"""Whether a study can begin with its baseline, and what to say of it if so."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from smart_tuner.errors import UserInputError
from smart_tuner.trial.trial import TrialOutcome
from smart_tuner.trial.verdict import describe_losses, outcome_of_losses
from smart_tuner.trial.watch import MIG
from smart_tuner.validate.losses import worst

if TYPE_CHECKING:
    from collections.abc import Iterator

    from smart_tuner.measure.goal import Goal
    from smart_tuner.trial.evaluate import BaselineReport
    from smart_tuner.validate.constraint import AccuracyConstraint

AUTO_FACTOR = 2.0
"""``--epsilon auto``: so many times the baseline's own loss, output by output."""

NOISY = 0.03
"""Half of the 95 % interval on the baseline's ratio to itself that is worth a warning."""


def baseline_notes(baseline: BaselineReport) -> Iterator[str]:
    """What the compiler said of the baseline, and whether this machine can measure at all."""
    if baseline.trial.engine is not None:
        yield from (f"Baseline: {note}." for note in baseline.trial.engine.notes)
    if any(MIG in comparison.device for comparison in baseline.trial.comparisons):
        yield "The GPU is cut into slices (MIG): other slices share its power and its clocks."
    for comparison in baseline.trial.comparisons:
        if comparison.half_width > NOISY:
            yield (
                f"The baseline measured against itself is known to {100 * comparison.half_width:.0f} % "
                f"only at point {comparison.point}: this machine is busy or noisy, and smaller "
                "gains cannot be proven here."
            )


def check_admission(baseline: BaselineReport, constraint: AccuracyConstraint, goal: Goal) -> None:
    """Stop before trial 1 if no route could be judged.

    Raises:
        UserInputError: The baseline itself is over epsilon or a limit, or cannot be measured as
            asked; names the ways out.
    """
    if outcome_of_losses(baseline.trial.losses) is not TrialOutcome.FEASIBLE:
        raise UserInputError(_inaccurate(baseline, constraint))
    broken = [str(use) for use in baseline.trial.limits if not use.is_kept]
    if broken:
        msg = (
            f"The baseline itself breaks a limit: {'; '.join(broken)}. Raise the limit, or name a "
            "--base that keeps it."
        )
        raise UserInputError(msg)
    for comparison in baseline.trial.comparisons:
        if goal.statistic.is_tail and math.isinf(comparison.half_width):
            name = goal.statistic.value
            why = " ".join(note for note in comparison.notes if f"No {name} is claimed" in note)
            msg = f"--statistic {name} cannot be used here. {why} Take the median."
            raise UserInputError(msg)


def _inaccurate(baseline: BaselineReport, constraint: AccuracyConstraint) -> str:
    loss = worst(baseline.trial.losses)
    if not baseline.repeatable:
        return (
            f"The model does not repeat itself: {' '.join(baseline.notes)} No route can be judged "
            f"within epsilon {loss.epsilon:g}: fix its random seeds, or give a looser --epsilon."
        )
    if not math.isfinite(loss.loss):
        return (
            f"The baseline does not match the reference: {describe_losses(baseline.trial.losses)}."
        )
    return (
        f"The baseline itself is over epsilon: output {loss.output} loses {loss.loss:.3g} "
        f"({loss.metric}) on pair {loss.pair}, allowed is {loss.epsilon:g}. Either take "
        f"{AUTO_FACTOR:g} times the baseline's loss (--metric {constraint.metric} --epsilon auto), "
        "or judge routes against the baseline (--reference baseline)."
    )
