"""When has a comparison been measured enough?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from typing_extensions import Self

from smart_tuner.errors import UserInputError
from smart_tuner.measure.latency import Statistic
from smart_tuner.measure.statistics import median_half_width

if TYPE_CHECKING:
    from collections.abc import Sequence

LEAST_PAIRS = 4
"""Two ABBA groups: what even a slow or a hopeless candidate gets, unless ``max_pairs`` is less."""


@dataclass(frozen=True, slots=True)
class StopRule:
    """How long, and in which blocks, baseline and candidate are measured.

    Pairs of blocks are measured in ABBA groups of two; the rule stops after whole groups, unless
    ``max_pairs`` is odd. Stopping once the interval is narrow favours moments of luck: in
    simulation the 95 % interval then covers 90 to 97 %. That is good enough to rank routes; what
    is reported comes from ``StopRule.fixed``.

    Attributes:
        target_half_width: Stop when the half width of the 95 % interval on
            ln(candidate / baseline) is at most this; 0.005 is half a percent.
        min_pairs: Pairs measured before ``target_half_width`` is asked.
        max_pairs: Pairs after which it is enough.
        max_seconds: Wall-clock seconds after which it is enough, the warm-up left out; at least
            four pairs are measured all the same.
        block_seconds: Shortest duration of a block.
        min_iterations: Fewest iterations kept of a block; slow models get fewer, so that
            ``min_pairs`` fit into ``max_seconds``.
        dropped: First iterations of a block that are left out, since the switch of arms made
            them cold; none where one iteration fills a block.
        warm_up_seconds: Shortest warm-up of an arm.
        futile_loss: Stop when the whole interval is slower than this share (0.03: 3 %);
            ``None`` measures hopeless candidates as carefully as the others.
        statistic: The figure that is compared.
    """

    target_half_width: float = 0.005
    min_pairs: int = 7
    max_pairs: int = 40
    max_seconds: float = 6.0
    block_seconds: float = 0.04
    min_iterations: int = 3
    dropped: int = 1
    warm_up_seconds: float = 0.1
    futile_loss: float | None = 0.03
    statistic: Statistic = Statistic.MEDIAN

    def __post_init__(self) -> None:
        for name, least in (("min_pairs", 1), ("min_iterations", 1), ("dropped", 0)):
            _check_count(name, getattr(self, name), least)
        _check_count("max_pairs", self.max_pairs, self.min_pairs)
        for name in ("target_half_width", "warm_up_seconds"):
            _check_number(name, getattr(self, name), at_least_zero=True)
        _check_number("block_seconds", self.block_seconds)
        if self.max_seconds != math.inf:
            _check_number("max_seconds", self.max_seconds)
        if self.futile_loss is not None:
            _check_number("futile_loss", self.futile_loss)

    @classmethod
    def fixed(
        cls,
        pairs: int,
        *,
        block_seconds: float = 0.04,
        statistic: Statistic = Statistic.MEDIAN,
    ) -> Self:
        """A sample size fixed beforehand, as finalists get it: the interval keeps its 95 %.

        Args:
            pairs: Pairs of blocks, >= 1; fewer than three give no interval.
            block_seconds: Shortest duration of a block; 10 or more shows power limits.
            statistic: The figure that is compared.
        """
        return cls(
            target_half_width=0.0,
            min_pairs=pairs,
            max_pairs=pairs,
            max_seconds=math.inf,
            block_seconds=block_seconds,
            futile_loss=None,
            statistic=statistic,
        )

    def is_satisfied(self, log_ratios: Sequence[float], elapsed_seconds: float) -> bool:
        """Whether to stop, given everything measured so far.

        Args:
            log_ratios: ln(candidate / baseline) of each pair.
            elapsed_seconds: Wall-clock seconds since the first pair began.
        """
        count = len(log_ratios)
        if count >= self.max_pairs:
            return True
        # After half an ABBA group one order is counted once too often: drift would not cancel.
        if count % 2 or count < LEAST_PAIRS:
            return False
        if elapsed_seconds >= self.max_seconds or self.is_futile(log_ratios):
            return True
        return count >= self.min_pairs and median_half_width(log_ratios) <= self.target_half_width

    def is_futile(self, log_ratios: Sequence[float]) -> bool:
        """Whether the candidate is clearly slower than ``futile_loss`` allows."""
        if self.futile_loss is None or len(log_ratios) < LEAST_PAIRS:
            return False
        ordered = sorted(log_ratios)
        middle = (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
        return middle - median_half_width(log_ratios) > math.log1p(self.futile_loss)


def _check_count(name: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        msg = f"Stop rule: {name} is {value!r}; give a whole number, {least} or more."
        raise UserInputError(msg)


def _check_number(name: str, value: float, *, at_least_zero: bool = False) -> None:
    if not (0 < value < math.inf or (at_least_zero and value == 0)):
        bound = "0 or more" if at_least_zero else "above 0"
        msg = f"Stop rule: {name} is {value!r}; give a finite number, {bound}."
        raise UserInputError(msg)
