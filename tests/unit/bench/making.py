"""Runs made by hand, with figures that can be checked by eye."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from smart_tuner.bench.run import Run, Task
from smart_tuner.bench.workloads import Workload

if TYPE_CHECKING:
    from collections.abc import Sequence

HALF = math.log(0.5)


def run(  # noqa: PLR0913, a factory of test data
    sampler: str = "one",
    shares: Sequence[float] = (0.0, 0.5, 1.0),
    *,
    generator: str = "sparse",
    seed: int = 0,
    trials: int | None = None,
    costs: Sequence[float] | None = None,
    optimum: float = HALF,
    is_winner: bool = False,
) -> Run:
    """A run whose shipped route had these shares of the attainable gain, half of the latency."""
    logs = tuple(math.log1p(-share / 2) for share in shares)
    count = len(shares)
    return Run(
        task=Task(sampler, Workload(generator, seed, 10), trials or count),
        digest="d",
        optimum=optimum,
        shipped=logs,
        observed=logs,
        costs=tuple(costs or range(1, count + 1)),
        outcomes={"feasible": count - 1, "build_failed": 1},
        repeated=1,
        ask_seconds=tuple(0.5 * (number + 1) for number in range(count)),
        confirmed=logs[-1],
        is_winner=is_winner,
        is_winner_at_one=is_winner,
    )
