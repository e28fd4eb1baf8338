"""Accuracy losses, one figure an output."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from smart_tuner.errors import UserInputError
from smart_tuner.validate.constraint import AccuracyConstraint, is_within
from smart_tuner.validate.elements import (
    count_wrong_non_finite,
    holds_ids,
    is_constant,
    share_of_different_bytes,
    share_of_different_ids,
    varies,
    why_incomparable,
)
from smart_tuner.validate.metrics import resolve_metric

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt

    Tensor = npt.NDArray[Any]

MISMATCH = "mismatch"
"""The metric of ids and text: share of elements that differ."""

MOST_VIOLATION = 6.0

_LEAST_VIOLATION = 1e-12
"""What a loss just above epsilon gets when the logarithm rounds to 0."""


@dataclass(frozen=True, slots=True)
class OutputLoss:
    """How far one output is from the reference, on one reference pair.

    Attributes:
        point: Name of the workload point.
        pair: Name of the reference pair.
        output: Name of the output.
        metric: The metric that was used on this output (``mismatch`` for ids and text).
        loss: 0 is perfect; infinite where the output is missing, has the wrong shape or type, is
            not finite where the reference is, or, at an infinite epsilon, is constant where the
            reference is not. At epsilon 0 it is 0 only if all bytes are
            equal; bytes that differ without a loss count by their share of the elements.
        epsilon: The limit for this output; the output is acceptable iff ``loss <= epsilon`` and
            ``loss`` is finite.
        message: Why the loss is infinite; else empty.
        pairs: How many reference pairs the loss is the mean of; 1 for a loss of one pair.
    """

    point: str
    pair: str
    output: str
    metric: str
    loss: float
    epsilon: float
    message: str = ""
    pairs: int = 1


def losses_of(
    reference: Mapping[str, Tensor],
    actual: Mapping[str, Tensor],
    constraint: AccuracyConstraint,
    *,
    point: str,
    pair: str,
) -> tuple[OutputLoss, ...]:
    """Judge every output of the reference, each by itself.

    Args:
        reference: Trusted outputs by name, at least one.
        actual: What the engine gave; outputs without a reference are not judged.
        constraint: Metric and limits.
        point: Name of the workload point.
        pair: Name of the reference pair.

    Raises:
        UserInputError: There is nothing to judge, or a metric cannot judge an output.
    """
    if not reference:
        msg = f"Reference pair {pair!r} of point {point!r} holds no outputs: nothing to judge."
        raise UserInputError(msg)
    losses = []
    for output, expected in reference.items():
        ids = holds_ids(expected)
        epsilon = constraint.epsilon_for(output, holds_ids=ids)
        metric = MISMATCH if ids else constraint.metric_for(output)
        try:
            loss, message = _loss_of(expected, actual.get(output), constraint, (metric, epsilon))
        except UserInputError as error:
            msg = f"Output {output!r}: {error}"
            raise UserInputError(msg) from error
        losses.append(OutputLoss(point, pair, output, metric, loss, epsilon, message))
    return tuple(losses)


def _loss_of(
    reference: Tensor,
    actual: Tensor | None,
    constraint: AccuracyConstraint,
    judged: tuple[str, float],
) -> tuple[float, str]:
    """Loss of one output, with the reason if it is infinite."""
    metric, epsilon = judged
    if actual is None:
        return math.inf, "the engine gave no such output"
    if problem := why_incomparable(reference, actual) or _emptied(reference, actual, epsilon):
        return math.inf, problem
    different = share_of_different_bytes(reference, actual) if epsilon == 0 else 0.0
    if epsilon == 0 and different == 0:
        return 0.0, ""
    if metric == MISMATCH:
        return share_of_different_ids(reference, actual), ""
    wrong = count_wrong_non_finite(reference, actual)
    if wrong:
        return math.inf, f"NaN or infinity not as in the reference: {wrong} of {reference.size}"
    loss = resolve_metric(metric)(reference, actual, constraint)
    reason = "" if loss < math.inf else "the metric gave infinity"
    return loss if loss > 0 else different, reason


def _emptied(reference: Tensor, actual: Tensor, epsilon: float) -> str:
    """Say so if nothing is left of an output that no metric holds to anything; else nothing."""
    if math.isinf(epsilon) and is_constant(actual) and varies(reference):
        return "the same value everywhere, where the reference varies"
    return ""


def unreferenced_outputs(
    outputs: Iterable[str], reference: Mapping[str, Tensor]
) -> tuple[str, ...]:
    """Outputs that the reference says nothing about, in the given order.

    Such an output could be wrong in any route; preparation refuses them.
    """
    return tuple(output for output in outputs if output not in reference)


def worst(losses: Sequence[OutputLoss]) -> OutputLoss:
    """The output that decides: the largest loss / epsilon, the first one of equals.

    Args:
        losses: At least one; of any outputs, pairs and points.
    """
    if not losses:
        msg = "No losses to choose the worst from."
        raise ValueError(msg)
    return max(losses, key=_severity)


def _severity(judged: OutputLoss) -> tuple[bool, float, float]:
    loss = math.inf if math.isnan(judged.loss) else judged.loss
    return not is_within(loss, judged.epsilon), _log_ratio(loss, judged.epsilon), loss


def _log_ratio(loss: float, epsilon: float) -> float:
    """log10(loss / epsilon), infinite at the ends; never NaN for a loss that is none."""
    if not loss < math.inf:
        return math.inf
    if loss <= 0 or math.isinf(epsilon):
        return -math.inf
    # A quotient of extremes would overflow; a difference of logarithms does not.
    return math.log10(loss) - math.log10(epsilon) if epsilon > 0 else math.inf


def violation(losses: Sequence[OutputLoss]) -> float:
    """log10(loss / epsilon) of the worst output, clipped to -6 ... 6; unit-free.

    At most 0 if and only if every output is acceptable. A perfect loss is -6; an infinite one,
    NaN, and any loss at epsilon 0 are 6. Always a finite number.

    Args:
        losses: At least one.
    """
    judged = worst(losses)
    clipped = max(-MOST_VIOLATION, min(MOST_VIOLATION, _log_ratio(judged.loss, judged.epsilon)))
    if is_within(judged.loss, judged.epsilon):
        return min(0.0, clipped)
    return max(_LEAST_VIOLATION, clipped)
