"""Scores and differences as tables for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scipy import stats

from smart_tuner.bench.score import POOLED, Score
from smart_tuner.bench.workloads import NULL

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from smart_tuner.bench.compare import Difference

    Rows = list[list[str]]


def score_tables(scores: Sequence[Score]) -> Iterator[tuple[str, list[str], Rows]]:
    """Title, head and rows of each group's table: pooled, then by generator."""
    groups = dict.fromkeys(score.group for score in scores)
    if len(groups.keys() - {NULL}) == 2 and POOLED in groups:
        del groups[POOLED]  # one generator alone: the same figures twice
    for group in groups:
        members = [score for score in scores if score.group == group]
        members.sort(key=lambda score: -score.area)
        if group == NULL:
            yield _null_table(members)
        else:
            yield _gain_table(group, members)
            if group == next(iter(groups)):
                yield _cost_table(group, members)


def _gain_table(group: str, members: Sequence[Score]) -> tuple[str, list[str], Rows]:
    points = list(members[0].gain)
    head = [
        "sampler",
        "runs",
        *(f"@{n}" for n in points),
        "area",
        "log",
        "shipped",
        "90 %",
        "trials",
    ]
    rows = [
        [
            score.sampler,
            str(score.workloads),
            *(f"{score.gain[n]:.2f}" for n in points),
            f"{score.area:.2f}",
            f"{score.log_gain[points[-1]]:.2f}",
            f"{score.confirmed:.2f}",
            f"{score.reached:.0%}",
            f"{score.trials_to_goal:.0f}" if score.trials_to_goal else f">{points[-1]}",
        ]
        for score in members
    ]
    name = "all generators" if group == POOLED else group
    return f"{name}: share of the attainable gain", head, rows


def _cost_table(group: str, members: Sequence[Score]) -> tuple[str, list[str], Rows]:
    points = list(members[0].gain)
    head = ["sampler", *(f"cost {n}" for n in points), "bad", "repeated", "ask", "late ask"]
    rows = [
        [
            score.sampler,
            *(f"{score.at_cost[n]:.2f}" for n in points),
            f"{score.infeasible:.0%}",
            f"{score.repeated:.0%}",
            milliseconds(score.ask_seconds),
            milliseconds(score.late_ask_seconds),
        ]
        for score in members
    ]
    name = "all generators" if group == POOLED else group
    return f"{name}: the same at equal cost, in builds of the default", head, rows


def _null_table(members: Sequence[Score]) -> tuple[str, list[str], Rows]:
    head = ["sampler", "runs", "false winners at 1.01", "at 1.00"]
    rows = [
        [
            score.sampler,
            str(score.workloads),
            share_with_bound(score.winners, score.workloads),
            share_with_bound(score.winners_at_one, score.workloads),
        ]
        for score in members
    ]
    return f"{NULL}: nothing to gain", head, rows


def difference_tables(
    differences: Sequence[Difference],
) -> Iterator[tuple[str, list[str], Rows]]:
    """Title, head and rows: pooled differences, then those by generator."""
    for pooled in (True, False):
        chosen = [item for item in differences if (item.group == POOLED) is pooled]
        if chosen:
            what = "all generators" if pooled else "by generator"
            title = f"gain fraction minus that of {chosen[0].rival}, {what}"
            head = ["sampler", "generator", "trials", "pairs", "difference", "95 % Holm", "p"]
            yield title, head, [_difference_row(item) for item in chosen]


def _difference_row(item: Difference) -> list[str]:
    return [
        item.sampler,
        item.group,
        str(item.trials),
        str(item.workloads),
        f"{item.mean:+.3f}",
        f"{item.low:+.3f} to {item.high:+.3f}",
        f"{item.p_value:.2g}",
    ]


def milliseconds(seconds: float) -> str:
    """Seconds of an ask for people: ``12 ms``, ``1.5 s``."""
    return f"{seconds:.1f} s" if seconds >= 1 else f"{1000 * seconds:.0f} ms"


def share_with_bound(count: int, total: int) -> str:
    """A share with the upper end of its 95 % interval (Clopper and Pearson, Biometrika 26, 1934)."""
    high = stats.binomtest(count, total).proportion_ci().high
    return f"{count} ({count / total:.1%}, at most {high:.1%})"
