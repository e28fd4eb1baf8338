"""Losses over several reference pairs: the worst one, its pair, and the mean."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from smart_tuner.validate.constraint import MEAN, is_within
from smart_tuner.validate.losses import OutputLoss, worst

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from smart_tuner.validate.constraint import AccuracyConstraint

_MEAN_NAME = re.compile(r"mean of (?P<pairs>[0-9]{1,9}) pairs")


@dataclass(frozen=True, slots=True)
class LossOverPairs:
    """The losses of one output at one workload point, over its reference pairs.

    Attributes:
        point: Name of the workload point.
        output: Name of the output.
        metric: The metric that was used on this output.
        worst: The largest loss of a pair.
        worst_pair: Name of that pair.
        mean: Mean loss of the pairs.
        pairs: How many pairs there are.
        epsilon: The limit for this output.
        over: Which of the two is held to it: ``worst`` or ``mean``.
    """

    point: str
    output: str
    metric: str
    worst: float
    worst_pair: str
    mean: float
    pairs: int
    epsilon: float
    over: str

    @property
    def judged(self) -> float:
        """The figure that is held to epsilon."""
        return self.mean if self.over == MEAN else self.worst

    def __str__(self) -> str:
        """One phrase: what is held to epsilon, then the worst pair by name."""
        said = f"output {self.output!r} (point {self.point!r}"
        limit = "" if math.isinf(self.epsilon) else f" of {self.epsilon:.3g} allowed"
        if self.pairs == 1:
            return f"{said}, pair {self.worst_pair!r}): {self.metric} {self.worst:.3g}{limit}"
        pair = f"pair {self.worst_pair!r}"
        if self.over == MEAN:
            return (
                f"{said}, {self.pairs} pairs): mean {self.metric} {self.mean:.3g}{limit}, worst "
                f"{self.worst:.3g} on {pair}"
            )
        return (
            f"{said}, {pair}, the worst of {self.pairs}): {self.metric} {self.worst:.3g}{limit}, "
            f"mean {self.mean:.3g}"
        )


def judged_over_pairs(
    losses: Sequence[OutputLoss], constraint: AccuracyConstraint
) -> tuple[OutputLoss, ...]:
    """Hold the losses of all pairs to epsilon as the constraint says.

    Under ``worst`` nothing changes: each pair keeps epsilon by itself. Under ``mean`` single pairs
    need only be finite, and one more loss for each output and point, the mean, keeps epsilon.

    Args:
        losses: Every pair of every point, as ``losses_of`` gave them.
        constraint: Metric and limits.
    """
    if constraint.over_pairs != MEAN:
        return tuple(losses)
    judged: list[OutputLoss] = []
    for group in _groups(losses):
        if len(group) == 1:
            judged += group
            continue
        judged += [replace(loss, epsilon=math.inf) for loss in group]
        message = next(
            (f"pair {loss.pair!r}: {loss.message}" for loss in group if loss.message), ""
        )
        mean = math.fsum(loss.loss for loss in group) / len(group)
        name = mean_name(len(group))
        judged.append(replace(group[0], pair=name, loss=mean, message=message, pairs=len(group)))
    return tuple(judged)


def mean_name(pairs: int) -> str:
    """What stands for the pair in a loss that is the mean of several."""
    return f"mean of {pairs} pairs"


def pairs_in(name: str) -> int:
    """How many pairs a loss is the mean of, by what stands for its pair; 1 for a pair's own."""
    found = _MEAN_NAME.fullmatch(name)
    return int(found["pairs"]) if found else 1


def judged_again(
    losses: Iterable[OutputLoss], before: Iterable[OutputLoss]
) -> tuple[OutputLoss, ...]:
    """Hold the losses of a later run to what the same pairs were allowed and had before.

    A pair may lie above a limit that only the mean has to keep.
    """
    had = {(loss.point, loss.pair, loss.output): loss.loss for loss in before}
    return tuple(
        replace(
            loss, epsilon=max(loss.epsilon, had.get((loss.point, loss.pair, loss.output), 0.0))
        )
        for loss in losses
    )


def over_pairs(losses: Sequence[OutputLoss]) -> tuple[LossOverPairs, ...]:
    """Sum up losses by point and output, in the order in which they come.

    Args:
        losses: As ``judged_over_pairs`` gave them.
    """
    return tuple(_summed_up(group) for group in _groups(losses))


def deciding(losses: Sequence[OutputLoss]) -> LossOverPairs | None:
    """The output and point that decide, over their pairs; ``None`` if there are no losses."""
    if not losses:
        return None
    one = worst(losses)
    of_one = [loss for loss in losses if (loss.point, loss.output) == (one.point, one.output)]
    return _summed_up(of_one)


def _groups(losses: Sequence[OutputLoss]) -> Iterable[list[OutputLoss]]:
    groups: dict[tuple[str, str], list[OutputLoss]] = {}
    for loss in losses:
        groups.setdefault((loss.point, loss.output), []).append(loss)
    return groups.values()


def _is_less(loss: OutputLoss, other: OutputLoss | None) -> bool:
    return other is not None and not loss.loss > other.loss


def _summed_up(group: Sequence[OutputLoss]) -> LossOverPairs:
    mean = next((loss for loss in group if loss.pairs > 1), None)
    by_pair: dict[str, OutputLoss] = {}
    for loss in group:
        # A pair that was run again, while it was timed, counts once.
        if loss.pairs == 1 and not _is_less(loss, by_pair.get(loss.pair)):
            by_pair[loss.pair] = loss
    singles = tuple(by_pair.values())
    top = max(singles, key=lambda loss: (not is_within(loss.loss, math.inf), loss.loss))
    figure = math.fsum(loss.loss for loss in singles) / len(singles)
    return LossOverPairs(
        point=top.point,
        output=top.output,
        metric=top.metric,
        worst=top.loss,
        worst_pair=top.pair,
        mean=figure if mean is None else mean.loss,
        pairs=len(singles),
        epsilon=top.epsilon if mean is None else mean.epsilon,
        over="worst" if mean is None else MEAN,
    )
