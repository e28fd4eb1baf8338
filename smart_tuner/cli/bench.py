"""``smart-tuner bench``: which search is best."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from smart_tuner.bench.comparison import Plan, run_comparison
from smart_tuner.bench.families import (
    FamilyComparison,
    compare_families,
    parse_cells,
    tables,
)
from smart_tuner.bench.leave_one_out import leave_one_out, left_out_tables
from smart_tuner.bench.samplers import contestant_names
from smart_tuner.bench.tables import difference_tables, score_tables
from smart_tuner.bench.workloads import LEAST_GAIN
from smart_tuner.cli.errors import guarded
from smart_tuner.cli.output import print_json
from smart_tuner.devices.cpu import cpu_quota
from smart_tuner.errors import UserInputError
from smart_tuner.simulate.generators import generator_names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from smart_tuner.bench.execute import OnRun
    from smart_tuner.bench.summary import Summary

HELP = "Compare samplers on simulated compilers, under one protocol for all."
EXAMPLE = "smart-tuner bench --samplers default,tpe,evolution --out bench"
NEEDS_ARGUMENTS = True
SAMPLERS = "default,evolution,random-8,mixed,tpe-centred"
PIPE_WIDTH = 160
GENERATORS = "sparse,pairs,gated,crashy,dense"


def _option(name: str, metavar: str, text: str) -> Any:
    """An option of this command; all of them have one name."""
    return typer.Option(name, metavar=metavar, help=text)


Samplers = Annotated[
    str,
    _option("--samplers", "NAMES", "Separated by commas; NAME:N runs on N workloads of a kind."),
]
Generators = Annotated[
    str | None, _option("--generators", "NAMES", "Kinds of simulated compilers.")
]
Recorded = Annotated[
    list[Path] | None, _option("--recorded", "PATH", "A study folder or T4 file; repeatable.")
]
Workloads = Annotated[int, _option("--workloads", "N", "Compilers of each kind.")]
Trials = Annotated[int, _option("--trials", "N", "Of each run.")]
Seed = Annotated[int, _option("--seed", "N", "Which compilers; seeds share none.")]
Out = Annotated[Path | None, _option("--out", "FOLDER", "Keeps the runs; the same call goes on.")]
Against = Annotated[
    str | None, _option("--against", "NAME", "The rival; the last sampler if not given.")
]
Jobs = Annotated[int | None, _option("--jobs", "N", "Processes; one a processor if not given.")]
Knobs = Annotated[int, _option("--knobs", "N", "Knobs of each simulated compiler.")]
LeastGain = Annotated[
    float, _option("--least-gain", "GAIN", "Leave out compilers that can gain less.")
]
Families = Annotated[
    str | None,
    _option(
        "--families", "CELLS", "Try priors instead: percent shared and flipped, as 80:15,50:35."
    ),
]
Taught = Annotated[int, _option("--taught", "N", "Trials of each study that makes a prior.")]
LeaveOneOut = Annotated[
    bool,
    typer.Option(
        "--leave-one-out", help="Try priors on --recorded studies: one left out, others teach."
    ),
]
Listing = Annotated[
    bool, typer.Option("--list", help="List samplers and generators, and run nothing.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print scores as JSON.")]


@guarded
def command(  # noqa: PLR0913, one parameter an option
    *,
    samplers: Samplers = SAMPLERS,
    generators: Generators = None,
    recorded: Recorded = None,
    workloads: Workloads = 10,
    trials: Trials = 120,
    seed: Seed = 0,
    out: Out = None,
    against: Against = None,
    jobs: Jobs = None,
    knobs: Knobs = 209,
    least_gain: LeastGain = LEAST_GAIN,
    families: Families = None,
    taught: Taught = 240,
    left_out: LeaveOneOut = False,
    names: Listing = False,
    as_json: AsJson = False,
) -> int:
    """Run what is missing, then print tables or JSON."""
    if names:
        return _list()
    folder, processes = _checked(out, jobs)
    if families is not None:
        comparison = FamilyComparison(
            parse_cells(families), workloads, taught, trials, seed=seed, knobs=knobs
        )
        return _families(comparison, folder, processes, as_json=as_json)
    if left_out:
        numbers = (workloads, trials, seed)
        return _left_out(tuple(recorded or ()), numbers, folder, processes)
    plan = Plan(
        samplers=tuple(_split(samplers)),
        generators=_generators(generators, recorded),
        workloads=workloads,
        trials=trials,
        seed=seed,
        against=against,
        knobs=knobs,
        least_gain=least_gain,
        recorded=tuple(recorded or ()),
    )
    summary = _run(plan, folder, processes)
    if as_json:
        print_json(summary.to_json())
    else:
        # A pipe has no width: there, no table is cut.
        _print(summary, Console(width=None if sys.stdout.isatty() else PIPE_WIDTH))
    return 0


def _list() -> int:
    print("samplers:", ", ".join(contestant_names()))
    print("generators:", ", ".join(generator_names()))
    return 0


def _checked(out: Path | None, jobs: int | None) -> tuple[Path, int]:
    """The folder for the runs, and how many processes work."""
    if out is None:
        msg = "Name a folder for the runs: --out FOLDER."
        raise UserInputError(msg)
    if jobs is not None and jobs < 1:
        msg = f"--jobs {jobs}: at least one process has to work."
        raise UserInputError(msg)
    return out, jobs or cpu_quota()


def _families(comparison: FamilyComparison, out: Path, jobs: int, *, as_json: bool) -> int:
    """Compare searches with and without a prior."""
    with _progress("families") as on_run:
        summary = compare_families(comparison, out, jobs, on_run)
    if as_json:
        print_json(summary)
    else:
        print("\n".join(tables(summary)))
    return 0


def _left_out(paths: tuple[Path, ...], numbers: tuple[int, int, int], out: Path, jobs: int) -> int:
    """Search recorded studies again, from nothing and from what the others taught."""
    with _progress("studies") as on_run:
        summary = leave_one_out(paths, numbers, out, jobs, on_run)
    print("\n".join(left_out_tables(summary)))
    return 0


def _generators(named: str | None, recorded: list[Path] | None) -> tuple[str, ...]:
    """Those named; by default the usual ones, or none where something recorded is named."""
    if named is None:
        return () if recorded else tuple(_split(GENERATORS))
    return tuple(_split(named))


def _split(names: str) -> Iterator[str]:
    """Names between commas, each once."""
    yield from dict.fromkeys(name.strip() for name in names.split(",") if name.strip())


def _run(plan: Plan, out: Path, jobs: int) -> Summary:
    with _progress("runs") as on_run:
        return run_comparison(plan, out, jobs, on_run)


@contextlib.contextmanager
def _progress(what: str) -> Iterator[OnRun]:
    """A progress bar, on standard error so that ``--json`` stays clean."""
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=not sys.stderr.isatty()) as progress:
        bar = progress.add_task(what)
        yield lambda done, total: progress.update(bar, completed=done, total=total)


def _print(summary: Summary, console: Console) -> None:
    for title, head, rows in (
        *score_tables(summary.scores),
        *difference_tables(summary.differences),
    ):
        console.print(title, style="bold", highlight=False)
        table = Table(box=None, pad_edge=False)
        for name in head:
            is_name = name in ("sampler", "generator")
            table.add_column(name, justify="left" if is_name else "right", no_wrap=True)
        for row in rows:
            table.add_row(*row)
        console.print(table)
        console.print()
