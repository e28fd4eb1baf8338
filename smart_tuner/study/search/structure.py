"""Whether engines that the compiler describes alike are alike: found out as the study goes on.

A compiler that times kernels writes other bytes at every build, so that equal files hardly ever
tell that a route had no effect. What it says of the layers may tell; that is believed once it was
right often enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from smart_tuner.measure.statistics import combine

if TYPE_CHECKING:
    from collections.abc import Mapping

    import optuna

    from smart_tuner.trial.evaluate import Evaluator
    from smart_tuner.trial.trial import Trial

STRUCTURE = "structure"
"""Study attribute: how often engines of one structure were as fast, and how often they were not."""

ENOUGH = 10
"""Pairs that must have agreed, and none disagreed."""

SAME = 0.01
"""Engines of one structure may differ by this much in ln(latency), beyond the interval."""


@dataclass(frozen=True, slots=True)
class StructureQuestion:
    """Counts how engines do that the compiler describes as it does the baseline's.

    Attributes:
        study: Keeps the counts.
        evaluator: Tries routes.
        weights: Weight by workload point.
    """

    study: optuna.Study
    evaluator: Evaluator
    weights: Mapping[str, float]

    def recall(self) -> None:
        """Do as earlier sessions found out."""
        agreed, disagreed = self._counts
        if agreed >= ENOUGH and not disagreed:
            self.evaluator.trust_structure()

    def learn(self, tried: Trial) -> str:
        """Count a trial; returns what is to be said once structures are trusted."""
        if not tried.is_alike or tried.unchanged or not tried.comparisons:
            return ""
        agreed, disagreed = self._counts
        ratio, half_width = combine(tried.comparisons, self.weights)
        if abs(ratio) <= SAME + half_width:
            agreed += 1
        else:
            disagreed += 1
        self.study.set_user_attr(STRUCTURE, [agreed, disagreed])
        if disagreed or agreed != ENOUGH:
            return ""
        self.recall()
        return (
            f"{ENOUGH} of {ENOUGH} engines that the compiler describes as the default's were as "
            "fast: from now on such routes count as having no effect, without a measurement."
        )

    @property
    def _counts(self) -> tuple[int, int]:
        agreed, disagreed = self.study.user_attrs.get(STRUCTURE, (0, 0))
        return int(agreed), int(disagreed)
