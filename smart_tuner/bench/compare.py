"""Whether one sampler is better than another: paired over workloads, corrected for many looks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

from smart_tuner.bench.score import POOLED, checkpoints, fraction
from smart_tuner.bench.workloads import NULL

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt

    from smart_tuner.bench.run import Run
    from smart_tuner.bench.workloads import Workload

    Differences = npt.NDArray[np.float64]

ERROR_RATE = 0.05
RESAMPLES = 10_000


@dataclass(frozen=True, slots=True)
class Difference:
    """One sampler's gain fraction minus its rival's, over the workloads that both ran.

    Attributes:
        sampler: The one.
        rival: The other.
        group: A generator, or ``all``.
        trials: After how many trials.
        workloads: How many pairs.
        mean: Mean difference; above 0 the sampler is better.
        low: Lower bound of the interval, at the level that Holm's correction leaves.
        high: Upper bound.
        p_value: Two-sided, corrected.
    """

    sampler: str
    rival: str
    group: str
    trials: int
    workloads: int
    mean: float
    low: float
    high: float
    p_value: float


def compare(runs: Sequence[Run], rival: str) -> tuple[Difference, ...]:
    """Compare every other sampler with a named rival, pooled and by generator.

    Differences are paired by workload. p-values are those of Wilcoxon's signed-rank test
    (Biometrics Bulletin 1, 1945), corrected by Holm's step-down method (Scandinavian Journal of
    Statistics 6, 1979); intervals are percentile bootstraps of the mean difference over workloads,
    each at the level that its step leaves. The pooled comparisons are one family, those by
    generator another.

    Args:
        runs: Runs of one comparison; null workloads and unpaired runs are left out.
        rival: Name of the rival.
    """
    by_workload: dict[Workload, dict[str, Run]] = {}
    for run in runs:
        if run.task.workload.generator != NULL:
            by_workload.setdefault(run.task.workload, {})[run.task.sampler] = run
    samplers = dict.fromkeys(run.task.sampler for run in runs if run.task.sampler != rival)
    points = checkpoints(max((run.task.trials for run in runs), default=1))
    generators = dict.fromkeys(workload.generator for workload in by_workload)
    pooled = _family(by_workload, (POOLED,), samplers, (rival, points))
    single = _family(by_workload, generators, samplers, (rival, points))
    return (*pooled, *(single if len(generators) > 1 else ()))


def _family(
    runs: Mapping[Workload, Mapping[str, Run]],
    groups: Iterable[str],
    samplers: Iterable[str],
    against: tuple[str, Sequence[int]],
) -> tuple[Difference, ...]:
    rival, points = against
    keys = [(s, g, n) for g in groups for s in samplers for n in points]
    found = [(key, _differences(runs, key, rival)) for key in keys]
    paired = [(key, values) for key, values in found if values.size]
    return _corrected(paired, rival)


def _differences(
    runs: Mapping[Workload, Mapping[str, Run]], key: tuple[str, str, int], rival: str
) -> Differences:
    sampler, group, trials = key
    pairs = (
        (by_name[sampler], by_name[rival])
        for workload, by_name in runs.items()
        if group in (POOLED, workload.generator) and {sampler, rival} <= by_name.keys()
    )
    return np.array([fraction(one, trials) - fraction(other, trials) for one, other in pairs])


def _corrected(
    paired: Sequence[tuple[tuple[str, str, int], Differences]], rival: str
) -> tuple[Difference, ...]:
    """Holm's steps, the smallest p-value first; a p-value never falls below an earlier one."""
    raw = [_p_value(values) for _, values in paired]
    order = sorted(range(len(raw)), key=raw.__getitem__)
    made: dict[int, Difference] = {}
    floor = 0.0
    for step, index in enumerate(order):
        (sampler, group, trials), values = paired[index]
        left = len(raw) - step
        floor = max(floor, min(1.0, raw[index] * left))
        low, high = bootstrap_mean(values, ERROR_RATE / left)
        made[index] = Difference(
            sampler, rival, group, trials, values.size, float(values.mean()), low, high, floor
        )
    return tuple(made[index] for index in range(len(raw)))


def _p_value(values: Differences) -> float:
    """Of Wilcoxon's test; 1 where nothing differs."""
    if not values.any():
        return 1.0
    return float(stats.wilcoxon(values, zero_method="pratt", method="approx").pvalue)


def bootstrap_mean(values: Differences, error_rate: float) -> tuple[float, float]:
    """Percentile interval of a mean over workloads.

    Args:
        values: One figure a workload.
        error_rate: Of both sides together.
    """
    random = np.random.default_rng(0)
    means = np.concatenate(
        [
            values[random.integers(values.size, size=(1000, values.size))].mean(axis=1)
            for _ in range(RESAMPLES // 1000)
        ]
    )
    low, high = np.quantile(means, (error_rate / 2, 1 - error_rate / 2))
    return float(low), float(high)
