"""What runs are worth: gain fractions, waste and time, by sampler and generator."""

from __future__ import annotations

import math
from collections.abc import Mapping  # noqa: TC003, pydantic reads the annotations of Score
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from smart_tuner.bench.workloads import NULL

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from smart_tuner.bench.run import Run

CHECKPOINTS = (30, 60, 120, 240)
POOLED = "all"
GOAL = 0.9
LATE = 10
"""Asks at the end of a run whose mean time is reported: an ask grows with the history."""


def checkpoints(trials: int) -> tuple[int, ...]:
    """The usual numbers of trials up to ``trials``, and ``trials`` itself."""
    return (*(count for count in CHECKPOINTS if count < trials), trials)


def fraction(run: Run, trials: int, figures: Sequence[float] | None = None) -> float:
    """Share of the attainable gain that a run had after some trials.

    (L_default - L_n) / (L_default - L_optimum), by true latencies; negative if a route slower
    than the default is recommended.

    Args:
        run: A run on a workload with something to gain.
        trials: After how many; a run that ended earlier keeps what it had.
        figures: True log latencies after each trial; by default those of the shipped route.
    """
    logs = run.shipped if figures is None else figures
    return math.expm1(logs[min(trials, len(logs)) - 1]) / math.expm1(run.optimum)


def log_fraction(run: Run, trials: int) -> float:
    """The same in logarithms: share of the attainable log speed-up."""
    return run.shipped[min(trials, len(run.shipped)) - 1] / run.optimum


def fraction_at_cost(run: Run, builds: float) -> float:
    """Share of the attainable gain once the trials had cost so many builds of the default.

    A trial counts when it ended; failed ones cost what they took. A run that ended cheaper keeps
    what it had.
    """
    ended = sum(cost <= builds for cost in run.costs)
    return fraction(run, ended) if ended else 0.0


def area(run: Run) -> float:
    """Mean of the gain fraction over the trials of a run, the first to the last."""
    return fmean(fraction(run, count) for count in range(1, run.task.trials + 1))


def trials_to_goal(run: Run) -> int | None:
    """After how many trials nine tenths of the attainable gain were reached, if ever."""
    reached = (n for n in range(1, len(run.shipped) + 1) if fraction(run, n) >= GOAL)
    return next(reached, None)


def infeasible_share(run: Run) -> float:
    """Share of the trials that failed or broke epsilon."""
    total = sum(run.outcomes.values())
    return 1 - run.outcomes.get("feasible", 0) / total


def ask_seconds(run: Run) -> tuple[float, float]:
    """Mean seconds an ask: over the run, and over its last asks."""
    spent = run.ask_seconds
    late = min(LATE, len(spent) - 1)
    last = (spent[-1] - spent[-1 - late]) / late if late else spent[-1]
    return spent[-1] / len(spent), last


@dataclass(frozen=True, slots=True)
class Score:
    """One sampler on one generator, or on all of them pooled (null workloads left out).

    Means over workloads unless said otherwise.

    Attributes:
        sampler: Its name.
        group: A generator, or ``all``.
        workloads: How many.
        gain: Gain fraction by number of trials, of the route that a study would ship.
        observed: The same of the route with the best figure of the search.
        log_gain: Share of the attainable log speed-up, by number of trials.
        at_cost: Gain fraction by builds of the default route that the search had cost.
        area: Mean gain fraction over the trials of a run.
        confirmed: Gain fraction of what is confirmed in the end, the default included.
        reached: Share of workloads on which nine tenths were reached.
        trials_to_goal: Median number of trials to nine tenths; ``None`` if most never got there.
        infeasible: Share of trials that failed or broke epsilon.
        repeated: Share of trials that tried a route again.
        ask_seconds: Seconds an ask.
        late_ask_seconds: Seconds an ask at the end of the runs.
        winners: Workloads on which a winner was confirmed at ``MIN_GAIN``: false ones on null.
        winners_at_one: The same at 1.00.
    """

    sampler: str
    group: str
    workloads: int
    gain: Mapping[int, float]
    observed: Mapping[int, float]
    log_gain: Mapping[int, float]
    at_cost: Mapping[int, float]
    area: float
    confirmed: float
    reached: float
    trials_to_goal: float | None
    infeasible: float
    repeated: float
    ask_seconds: float
    late_ask_seconds: float
    winners: int
    winners_at_one: int


@dataclass(frozen=True, slots=True)
class Curve:
    """Mean gain fraction of one sampler after each trial.

    Attributes:
        sampler: Its name.
        group: A generator, or ``all``.
        gain: After 1, 2, ... trials.
    """

    sampler: str
    group: str
    gain: tuple[float, ...]


def curves(runs: Iterable[Run]) -> tuple[Curve, ...]:
    """Curves by group and sampler; workloads with nothing to gain have none."""
    groups = _grouped(run for run in runs if run.optimum < 0)
    found = []
    for (group, sampler), members in groups.items():
        trials = max(run.task.trials for run in members)
        gain = [fmean(fraction(run, n) for run in members) for n in range(1, trials + 1)]
        found.append(Curve(sampler, group, tuple(round(share, 4) for share in gain)))
    return tuple(found)


def score(runs: Iterable[Run]) -> tuple[Score, ...]:
    """Score runs by sampler, pooled and by generator, in the order in which they come."""
    groups = _grouped(runs)
    return tuple(_score(sampler, group, groups[group, sampler]) for group, sampler in groups)


def _grouped(runs: Iterable[Run]) -> dict[tuple[str, str], list[Run]]:
    """Runs by group and sampler, the pooled group first."""
    groups: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        generator = run.task.workload.generator
        for group in (POOLED, generator) if generator != NULL else (generator,):
            groups.setdefault((group, run.task.sampler), []).append(run)
    return {key: groups[key] for key in sorted(groups, key=lambda key: key[0] != POOLED)}


def _score(sampler: str, group: str, runs: Sequence[Run]) -> Score:
    points = checkpoints(max(run.task.trials for run in runs))
    useful = [run for run in runs if run.optimum < 0]
    asks = [ask_seconds(run) for run in runs]
    trials = sum(sum(run.outcomes.values()) for run in runs)
    goals = [trials_to_goal(run) for run in useful]
    return Score(
        sampler=sampler,
        group=group,
        workloads=len(runs),
        gain={n: _mean(fraction(run, n) for run in useful) for n in points},
        observed={n: _mean(fraction(run, n, run.observed) for run in useful) for n in points},
        log_gain={n: _mean(log_fraction(run, n) for run in useful) for n in points},
        at_cost={n: _mean(fraction_at_cost(run, n) for run in useful) for n in points},
        area=_mean(area(run) for run in useful),
        confirmed=_mean(math.expm1(run.confirmed) / math.expm1(run.optimum) for run in useful),
        reached=_mean(goal is not None for goal in goals),
        trials_to_goal=_censored_median(goals),
        infeasible=fmean(infeasible_share(run) for run in runs),
        repeated=sum(run.repeated for run in runs) / trials,
        ask_seconds=fmean(mean for mean, _ in asks),
        late_ask_seconds=fmean(late for _, late in asks),
        winners=sum(run.is_winner for run in runs),
        winners_at_one=sum(run.is_winner_at_one for run in runs),
    )


def _mean(figures: Iterable[float]) -> float:
    values = list(figures)
    return fmean(values) if values else 0.0


def _censored_median(counts: Sequence[int | None]) -> float | None:
    """Median with the runs that never got there at the end."""
    reached = sorted(count for count in counts if count is not None)
    middle = len(counts) // 2
    return float(reached[middle]) if middle < len(reached) else None
