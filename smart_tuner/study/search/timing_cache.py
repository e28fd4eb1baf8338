"""Whether trials may start from the baseline's kernel timings: asked once per study.

A compiler that looks a timing up may take one that another route left, under a key that does not
tell the two apart. Then routes would get engines that they would not get on their own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from smart_tuner.errors import TrialError
from smart_tuner.measure.statistics import combine
from smart_tuner.trial.trial import TrialOutcome

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import optuna

    from smart_tuner.measure.stop_rule import StopRule
    from smart_tuner.trial.evaluate import Evaluator
    from smart_tuner.trial.trial import Trial

TIMING_CACHE = "timing_cache"
"""Study attribute: whether timings are shared, and what that rests on."""

BUILD_NOISE = 0.05
"""Two builds of one route may differ by this much in ln(latency) anyway: a standard deviation of
0.009 was seen on one network, and two builds that differed by 0.042 on another."""


@dataclass(frozen=True, slots=True)
class Probe:
    """One route, built with the baseline's timings and without.

    Attributes:
        cold: The trial that started from an empty timing cache.
        difference: How the two disagree; empty if they do not.
    """

    cold: Trial
    difference: str

    @property
    def sentence(self) -> str:
        """What was found, for people."""
        route = f"route {self.cold.route}, built with and without the baseline's timing cache"
        if not self.difference:
            return f"Trials share the baseline's timing cache: {route}, gives the same."
        return (
            f"The timing cache is no longer shared, builds take longer: {route}, differs "
            f"({self.difference})."
        )


@dataclass(frozen=True, slots=True)
class CacheQuestion:
    """Asks whether the timing cache may be shared.

    Attributes:
        study: Keeps the answer.
        evaluator: Tries routes.
        weights: Weight by workload point.
    """

    study: optuna.Study
    evaluator: Evaluator
    weights: Mapping[str, float]

    def recall(self) -> None:
        """Do as an earlier session found out."""
        if not self.study.user_attrs.get(TIMING_CACHE, {"shared": True})["shared"]:
            self.evaluator.stop_sharing_timing_cache()

    def is_open(self, seeded: Trial) -> bool:
        """Whether this trial can answer a question that is not answered yet."""
        return (
            seeded.outcome is TrialOutcome.FEASIBLE
            and not seeded.unchanged
            and seeded.engine is not None
            and seeded.engine.timing_cache is not None
            and seeded.engine.request.timing_cache is not None  # else it was refused
            and TIMING_CACHE not in self.study.user_attrs
            and self.evaluator.timing_cache is not None
        )

    def ask(
        self, seeded: Trial, folder: Path, rule: StopRule, deadline_seconds: float
    ) -> Probe | None:
        """Build the trial's route again from an empty cache, and compare.

        Returns:
            ``None`` if that took too long to know.
        """
        cold = self.evaluator.evaluate(
            seeded.route, folder, rule, cold=True, deadline_seconds=deadline_seconds
        )
        if cold.outcome is TrialOutcome.TIMED_OUT:
            return None
        probe = Probe(cold, self._difference(seeded, cold))
        answer = {"shared": not probe.difference, "sentence": probe.sentence}
        self.study.set_user_attr(TIMING_CACHE, answer)
        self.recall()
        return probe

    def _difference(self, seeded: Trial, cold: Trial) -> str:
        if cold.outcome is not seeded.outcome:
            return f"without it: {cold.outcome.value}, {cold.message or 'no reason given'}"
        if cold.engine is None or seeded.engine is None:
            return ""
        missing = self._missing_keys(seeded, cold)
        if missing:
            return f"{missing} timings of its own were never taken"
        if cold.engine.fingerprint == seeded.engine.fingerprint:
            return ""
        return self._slower(seeded, cold)

    def _missing_keys(self, seeded: Trial, cold: Trial) -> int:
        """Timings that the route takes on its own, and did not take with the cache."""
        caches = [trial.engine.timing_cache for trial in (seeded, cold) if trial.engine]
        try:
            keys = self.evaluator.timing_cache_keys([cache for cache in caches if cache])
        except TrialError:
            return 0
        if len(keys) < len(caches) or keys[0] is None or keys[1] is None:
            return 0
        return len(keys[1] - keys[0])

    def _slower(self, seeded: Trial, cold: Trial) -> str:
        """Timings that do not fit a route cost speed; a faster engine is luck, not harm."""
        ratio, width = combine(seeded.comparisons, self.weights)
        cold_ratio, cold_width = (
            (0.0, 0.0) if cold.unchanged else combine(cold.comparisons, self.weights)
        )
        gap = ratio - cold_ratio
        if gap <= BUILD_NOISE + math.hypot(width, cold_width):
            return ""
        return f"its engine is {100 * math.expm1(gap):.1f} % slower with it"


def sharing_note(study: optuna.Study) -> tuple[str, ...]:
    """What was found out about the timing cache; nothing if the question never came up."""
    answer = study.user_attrs.get(TIMING_CACHE)
    return (str(answer["sentence"]),) if answer else ()
