"""What a study measures: which figure of the latency, of which kind, and how much of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from smart_tuner.measure.latency import Statistic
from smart_tuner.measure.stop_rule import StopRule

if TYPE_CHECKING:
    from collections.abc import Mapping

THROUGHPUT = "throughput"

WINDOW_SECONDS = 2.0
"""Shortest block of a throughput: streams that start and end together must not count."""

TAIL_PAIRS = 8
"""Pairs of blocks that share the samples which a tail needs."""

WINDOW_PAIRS = (4, 8)

_KINDS = {
    "end_to_end": "end-to-end latency",
    "compute": "compute latency, copies left out",
    THROUGHPUT: "milliseconds per inference at full throughput",
}


@dataclass(frozen=True, slots=True)
class Goal:
    """What is measured, the same in every trial of a study.

    Attributes:
        statistic: The figure of each arm that is compared.
        objective: ``end_to_end``, ``compute`` or ``throughput``; values are milliseconds per
            inference for each of them.
    """

    statistic: Statistic = Statistic.MEDIAN
    objective: str = "end_to_end"

    @property
    def is_windowed(self) -> bool:
        """Whether inferences overlap, so that only whole windows can be timed."""
        return self.objective == THROUGHPUT

    @property
    def words(self) -> str:
        """What is measured, for people."""
        kind = _KINDS.get(self.objective, self.objective)
        if self.is_windowed:
            kind = f"{kind}, windows of {WINDOW_SECONDS:g} s"
        return f"{self.statistic.value} {kind}"

    @property
    def identity(self) -> Mapping[str, str]:
        """What a resumed study must have in common; nothing for the default, as ever."""
        if self.statistic is Statistic.MEDIAN:
            return {}
        return {"statistic": self.statistic.value}

    @property
    def search_rule(self) -> StopRule:
        """When a route is measured enough to be ranked.

        A tail takes the samples that it needs, however long; a throughput takes whole windows.
        """
        rule = StopRule(statistic=self.statistic)
        if self.statistic.is_tail:
            rule = self.fixed(TAIL_PAIRS)
        if not self.is_windowed:
            return rule
        least, most = WINDOW_PAIRS
        return replace(
            rule,
            min_pairs=least,
            max_pairs=max(most, rule.min_pairs),
            max_seconds=float("inf"),
            block_seconds=WINDOW_SECONDS,
        )

    def fixed(self, pairs: int, *, block_seconds: float = 0.04) -> StopRule:
        """A sample size fixed beforehand.

        Args:
            pairs: Pairs of blocks, at least one.
            block_seconds: Shortest duration of a block; a throughput takes no less than a window.
        """
        seconds = max(block_seconds, WINDOW_SECONDS) if self.is_windowed else block_seconds
        return StopRule.fixed(pairs, block_seconds=seconds, statistic=self.statistic)
