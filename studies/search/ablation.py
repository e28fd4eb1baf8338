#!/usr/bin/env python3
"""Does each mechanism of the default sampler pay? Searches with one of them switched off.

    python studies/search/ablation.py --workloads 8 --trials 240 --seed 21 --jobs 12 --out FOLDER
    python studies/search/ablation.py table FOLDER [--json FILE] [--against VARIANT]
    python studies/search/ablation.py list

Every variant meets the same compilers and the same noise, in the machinery of `smart-tuner bench`.
The same command goes on where an earlier one was stopped; other variants add to a folder.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from statistics import fmean

from ablation_variants import DEFAULT, VARIANTS, Play, play_variant, variant_of
from scipy import stats

from smart_tuner.bench.execute import Ledger, execute_plans
from smart_tuner.bench.run import Run, Task
from smart_tuner.bench.score import (
    POOLED,
    area,
    ask_seconds,
    checkpoints,
    fraction,
    infeasible_share,
)
from smart_tuner.bench.workloads import LEAST_GAIN, Workload, choose_workloads
from smart_tuner.errors import SmartTunerError, UserInputError
from smart_tuner.model.files import write_json
from smart_tuner.report.markdown import table

KINDS = "sparse,pairs,gated,crashy,dense,lossy,drifting"
RESERVED = {3000, 3300, 3600, 4200}
"""Seeds that figures are reported on: what is decided by an ablation must not have seen them."""

CONFIDENCE = 0.95
CAPTION = """Above 0, what the variant lacks pays, or what it adds does not. Means over workloads,
with Student's 95 % interval of the paired differences; bold where it leaves 0 out. No correction
for many looks: of 20 lines about nothing, one is bold. `differ` counts the workloads on which
other routes were tried."""


def main() -> int:
    command, rest = (sys.argv[1:2] or [""])[0], sys.argv[2:]
    try:
        if command == "table":
            return show(rest)
        if command == "list":
            print("\n".join(_described(VARIANTS)))
            return 0
        return run(sys.argv[1:])
    except SmartTunerError as error:
        print(f"ablation: {error}", file=sys.stderr)
        return error.exit_code


def run(arguments: Sequence[str]) -> int:
    """Run what the folder lacks."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workloads", type=int, default=8, help="compilers of each kind")
    parser.add_argument("--trials", type=int, default=240)
    parser.add_argument("--seed", type=int, required=True, help="one that was looked at: 12, 21")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument(
        "--variants", default=",".join(VARIANTS), help="a,b+c: default, a, and b with c"
    )
    parser.add_argument("--kinds", default=KINDS)
    parser.add_argument("--knobs", type=int, default=209)
    given = parser.parse_args(arguments)
    plays = _plays(given)
    execute_plans(plays, play_variant, given.out, given.jobs, _say)
    print(file=sys.stderr)
    return 0


def _plays(given: argparse.Namespace) -> list[Play]:
    """All variants on the first compiler of each kind, then on the second: stopped, it is even."""
    names = list(dict.fromkeys((DEFAULT, *given.variants.split(","))))
    for name in names:
        variant_of(name)  # refuses what there is not
    if given.seed in RESERVED:
        msg = f"Seed {given.seed} is reserved for figures that are reported; take another one."
        raise UserInputError(msg)
    kinds = [
        choose_workloads(
            [kind], given.workloads, seed=given.seed, knobs=given.knobs, least_gain=LEAST_GAIN
        )
        for kind in given.kinds.split(",")
    ]
    workloads: Iterable[Workload] = chain.from_iterable(zip(*kinds, strict=True))
    return [Play(Task(name, workload, given.trials)) for workload in workloads for name in names]


def _say(done: int, total: int) -> None:
    print(f"\r{done} of {total}", end="", file=sys.stderr, flush=True)


# ------------------------------------------------------------------ tables


@dataclass(frozen=True)
class Mean:
    """A mean of paired differences, with Student's interval if there are two or more."""

    mean: float
    low: float | None = None
    high: float | None = None

    @classmethod
    def of(cls, values: Sequence[float]) -> Mean:
        mean = fmean(values)
        if len(values) < 2:
            return cls(mean)
        half = float(stats.t.ppf(0.5 + CONFIDENCE / 2, len(values) - 1)) * float(stats.sem(values))
        return cls(mean, mean - half, mean + half)

    def __str__(self) -> str:
        if self.low is None or self.high is None:
            return f"{self.mean:+.3f}"
        sure = "" if self.low <= 0 <= self.high else "**"
        return f"{sure}{self.mean:+.3f}{sure} ({self.low:+.3f} to {self.high:+.3f})"


@dataclass(frozen=True)
class Row:
    """What switching one mechanism off costs on one kind of compilers, or on all.

    Attributes:
        variant: Its name.
        group: A kind, or ``all``.
        pairs: Workloads that both ran.
        differ: Those on which the two searches differ at all.
        gain: Gain fraction of the default minus the variant's, by number of trials.
        area: The same of the mean over all trials.
        failed: Share of the variant's trials that failed or broke epsilon.
        ask_ms: Milliseconds an ask of the variant.
    """

    variant: str
    group: str
    pairs: int
    differ: int
    gain: dict[int, Mean]
    area: Mean
    failed: float
    ask_ms: float


def show(arguments: Sequence[str]) -> int:
    """Print the tables of a folder."""
    parser = argparse.ArgumentParser(prog="ablation.py table")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--json", type=Path, help="write the figures as well")
    parser.add_argument("--against", default=DEFAULT, metavar="VARIANT", help="instead of default")
    given = parser.parse_args(arguments)
    runs = Ledger(given.folder).read()
    rows = list(_rows(runs.values(), given.against))
    if not rows:
        msg = f"{given.folder}: {given.against!r} has not run there yet."
        raise UserInputError(msg)
    if given.json:
        write_json(given.json, {"rows": [asdict(row) for row in rows]})
    print("\n".join(_page(rows, given.against)))
    return 0


def _rows(runs: Iterable[Run], against: str) -> Iterator[Row]:
    """Pooled rows first, then kind by kind; variants in the order of their list."""
    found: dict[str, dict[tuple[Workload, int], Run]] = {}
    for run in runs:
        found.setdefault(run.task.sampler, {})[run.task.workload, run.task.trials] = run
    first = found.get(against, {})
    kinds = [*KINDS.split(","), *(workload.generator for workload, _ in first)]
    names = [*VARIANTS, *found]
    for group in (POOLED, *dict.fromkeys(kinds)):
        for name in dict.fromkeys((against, *names)):
            both = [key for key in found.get(name, {}) if key in first and _is_in(key, group)]
            if both:
                yield _row(name, group, [(first[key], found[name][key]) for key in both])


def _is_in(key: tuple[Workload, int], group: str) -> bool:
    return group in (POOLED, key[0].generator)


def _row(name: str, group: str, pairs: Sequence[tuple[Run, Run]]) -> Row:
    points = checkpoints(min(run.task.trials for run, _ in pairs))
    return Row(
        variant=name,
        group=group,
        pairs=len(pairs),
        differ=sum(_has_tried(one) != _has_tried(other) for one, other in pairs),
        gain={n: Mean.of([fraction(a, n) - fraction(b, n) for a, b in pairs]) for n in points},
        area=Mean.of([area(a) - area(b) for a, b in pairs]),
        failed=fmean(infeasible_share(run) for _, run in pairs),
        ask_ms=1000 * fmean(ask_seconds(run)[0] for _, run in pairs),
    )


def _has_tried(run: Run) -> tuple[object, ...]:
    """What two runs share if the very same routes were tried."""
    return run.costs, run.shipped, run.observed, run.outcomes


def _page(rows: Sequence[Row], against: str) -> Iterator[str]:
    yield f"Gain fraction of `{against}` ({rows[0].pairs} searches) minus that of the variant."
    yield from CAPTION.splitlines()
    for group in dict.fromkeys(row.group for row in rows):
        yield from ("", f"## {'all kinds' if group == POOLED else group}", "")
        chosen = [row for row in rows if row.group == group]
        points = list(chosen[0].gain)
        gains = (*(f"@{n}" for n in points), "area")
        head = ("variant", "pairs", "differ", *gains, "failed", "an ask")
        yield from table(head, (_cells(row, against) for row in chosen))
    yield ""
    yield from _described(dict.fromkeys(row.variant for row in rows))


def _described(names: Iterable[str]) -> Iterator[str]:
    return table(("variant", "what"), ((name, variant_of(name).what) for name in names))


def _cells(row: Row, against: str) -> list[str]:
    is_same = row.variant == against
    figures = [*row.gain.values(), row.area]
    return [
        row.variant,
        str(row.pairs),
        "" if is_same else str(row.differ),
        *("" if is_same else str(figure) for figure in figures),
        f"{row.failed:.0%}".replace("%", " %"),
        f"{row.ask_ms:.0f} ms",
    ]


if __name__ == "__main__":
    sys.exit(main())
