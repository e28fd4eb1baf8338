"""Recorded studies, each searched again from nothing and from what the others taught."""

from __future__ import annotations

import datetime
import hashlib
from dataclasses import asdict, dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from smart_tuner.bench.compare import bootstrap_mean
from smart_tuner.bench.execute import execute_plans
from smart_tuner.bench.play import play_with
from smart_tuner.bench.recorded import label, load_recorded
from smart_tuner.bench.run import Task
from smart_tuner.bench.score import fraction, trials_to_goal
from smart_tuner.bench.workloads import SEEDS_A_RUN, Workload
from smart_tuner.errors import UserInputError
from smart_tuner.model.files import whole_file, write_json
from smart_tuner.priors.align import align
from smart_tuner.priors.build import build_prior
from smart_tuner.priors.distance import Target
from smart_tuner.priors.sources import observe_study
from smart_tuner.priors.use import believe, weigh
from smart_tuner.report.markdown import plain, table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from smart_tuner.bench.execute import OnRun
    from smart_tuner.bench.run import Run
    from smart_tuner.priors.document import StudyEntry
    from smart_tuner.priors.use import Believed

COLD, WARM = "cold", "warm"
SAMPLER = "default"
POINTS = (5, 10, 20, 30, 60)
ERROR_RATE = 0.05
LEAST_GAIN = 1.01
"""Studies that can gain less only teach."""

DIGITS = 16
"""Of a digest, as runs keep it."""

SUMMARY_FILE, TABLES_FILE = "left_out.json", "left_out.md"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """One study, searched again with noise of its own.

    Attributes:
        path: The study.
        others: Those that teach.
        seeds: How many searches of each kind.
        trials: Of each search.
        first: Seed of the first one.
        digests: Of what each kind of search rests on.
    """

    path: Path
    others: tuple[Path, ...]
    seeds: int
    trials: int
    first: int
    digests: Mapping[str, str]

    def task(self, kind: str, number: int) -> Task:
        """One run."""
        return Task(kind, self.workload(number), self.trials)

    def workload(self, number: int) -> Workload:
        """The study as a workload."""
        knobs = len(load_recorded(self.path).knobs)
        return Workload(label(self.path), self.first + number, knobs, str(self.path))

    def digest(self, task: Task) -> str:
        """Of the study, and where a prior is used of those that teach too."""
        return self.digests[task.sampler]

    def tasks(self) -> tuple[Task, ...]:
        """What comes out of it, in order."""
        return tuple(
            self.task(kind, number) for number in range(self.seeds) for kind in (COLD, WARM)
        )


def play_left_out(plan: LeftOut) -> tuple[Run, ...]:
    """Run everything on one study, in this process."""
    compiler = load_recorded(plan.path)
    beliefs = taught(plan).beliefs
    return tuple(
        replace(
            play_with(task, compiler, SAMPLER, beliefs if task.sampler == WARM else None)[0],
            digest=plan.digest(task),
        )
        for task in plan.tasks()
    )


def taught(plan: LeftOut) -> Believed:
    """What the other studies say of this one, as ``tune --prior`` would have it."""
    here = observe_study(plan.path)
    prior = align(build_prior([observe_study(path) for path in plan.others]), here.choices)
    return believe(prior, weigh(prior, _target(here.entry)))


def leave_one_out(
    paths: Sequence[Path], numbers: tuple[int, int, int], folder: Path, jobs: int, on_run: OnRun
) -> Mapping[str, object]:
    """Run what is missing; write summary and tables into the folder, and return the summary.

    Args:
        paths: Study folders, at least two.
        numbers: Searches of each kind, trials of each, and the seed.
        folder: Where runs and results are kept.
        jobs: How many processes work.
        on_run: Hears how many of how many studies are done.

    Raises:
        UserInputError: There are too few studies, or one is none.
        StudyMismatch: The folder holds runs on a study that has changed since.
    """
    plans = _plans(paths, numbers)
    kept = execute_plans(plans, play_left_out, folder, jobs, on_run)
    rows = [_row(plan, kept) for plan in plans]
    pooled = [asdict(item) for item in _pooled(plans, kept)]
    summary = {"seeds": numbers[0], "trials": numbers[1], "studies": rows, "differences": pooled}
    write_json(folder / SUMMARY_FILE, summary)
    with whole_file(folder / TABLES_FILE) as file:
        file.write("\n".join((*left_out_tables(summary), "")).encode())
    return summary


def _plans(paths: Sequence[Path], numbers: tuple[int, int, int]) -> tuple[LeftOut, ...]:
    """One a study that can gain something."""
    seeds, trials, seed = numbers
    places = tuple(dict.fromkeys(path.expanduser().absolute() for path in paths))
    if len(places) < 2:
        msg = (
            "--leave-one-out needs at least two --recorded studies: one is left out, others teach."
        )
        raise UserInputError(msg)
    studies = {path: load_recorded(path) for path in places}
    digests = {path: study.digest() for path, study in studies.items()}
    plans = tuple(
        LeftOut(
            path,
            tuple(other for other in places if other != path),
            seeds,
            trials,
            seed * SEEDS_A_RUN,
            _digests(digests, path),
        )
        for path in places
        if studies[path].attainable_gain() >= LEAST_GAIN
    )
    if not plans:
        msg = f"None of these studies can gain {LEAST_GAIN:g}x, so there is nothing to compare."
        raise UserInputError(msg)
    return plans


def _digests(studies: Mapping[Path, str], left_out: Path) -> Mapping[str, str]:
    """By kind of search; a prior changes with the studies that it is made of, and their order."""
    whole = "".join((studies[left_out], *studies.values()))
    warm = hashlib.sha256(whole.encode()).hexdigest()
    return {COLD: studies[left_out][:DIGITS], WARM: warm[:DIGITS]}


def left_out_tables(summary: Mapping[str, object]) -> Iterator[str]:
    """The summary as Markdown."""
    studies: Sequence[Mapping[str, object]] = summary["studies"]  # type: ignore[assignment]
    differences: Sequence[Mapping[str, object]] = summary["differences"]  # type: ignore[assignment]
    points: list[str] = [*studies[0][COLD]]  # type: ignore[misc]
    yield from table(
        (
            "study left out",
            "can gain",
            "begins from",
            *(f"@{p}" for p in points),
            "trials to 90 %",
        ),
        (
            (
                plain(study["study"]),
                f"{study['gain']:.3f}x",
                kind,
                *(f"{share:.2f}" for share in study[kind].values()),  # type: ignore[attr-defined]
                str(study[f"{kind}_trials"] or f">{summary['trials']}"),
            )
            for study in studies
            for kind in (COLD, WARM)
        ),
    )
    yield ""
    yield from table(
        ("warm minus cold, gain fraction", "runs", "mean", "95 %"),
        (
            (
                f"after {item['trials']} trials",
                str(item["runs"]),
                f"{item['mean']:+.3f}",
                f"{item['low']:+.3f} to {item['high']:+.3f}",
            )
            for item in differences
        ),
    )
    yield ""
    for study in studies:
        yield f"- {plain(study['study'])}: {plain('; '.join(study['used']))}"  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class _Difference:
    trials: int
    runs: int
    mean: float
    low: float
    high: float


def _target(entry: StudyEntry) -> Target:
    """A study as if it were to begin, on the day after it did."""
    try:
        day = datetime.date.fromisoformat(entry.created[:10])
    except ValueError:
        day = datetime.datetime.now(datetime.timezone.utc).date()
    return Target(
        backend=entry.backend,
        backend_version=entry.backend_version,
        tuner_version=entry.tuner_version,
        device=entry.device,
        metric=entry.metric,
        epsilon=entry.epsilon,
        objective=entry.objective,
        network=entry.network,
        today=day,
    )


def _points(plans: Sequence[LeftOut]) -> list[int]:
    return [point for point in POINTS if point <= plans[0].trials]


def _row(plan: LeftOut, runs: Mapping[Task, Run]) -> dict[str, object]:
    compiler = load_recorded(plan.path)
    row: dict[str, object] = {
        "study": label(plan.path),
        "gain": round(compiler.attainable_gain(), 4),
        "used": [near.sentence for near in taught(plan).studies],
    }
    for kind in (COLD, WARM):
        mine = [runs[plan.task(kind, number)] for number in range(plan.seeds)]
        row[kind] = {
            str(point): round(fmean(fraction(run, point) for run in mine), 4)
            for point in _points([plan])
        }
        row[f"{kind}_trials"] = _median_to_goal(mine)
    return row


def _median_to_goal(runs: Sequence[Run]) -> int | None:
    """Median trials to nine tenths of the gain; ``None`` if half of the runs never got there."""
    counts = sorted(count for run in runs if (count := trials_to_goal(run)) is not None)
    middle = len(runs) // 2
    return counts[middle] if middle < len(counts) else None


def _pooled(plans: Sequence[LeftOut], runs: Mapping[Task, Run]) -> Iterator[_Difference]:
    """Paired differences over all studies and seeds; studies are few, so seeds are the units."""
    for point in _points(plans):
        values = np.array(
            [
                fraction(runs[plan.task(WARM, n)], point)
                - fraction(runs[plan.task(COLD, n)], point)
                for plan in plans
                for n in range(plan.seeds)
            ]
        )
        low, high = bootstrap_mean(values, ERROR_RATE)
        yield _Difference(point, values.size, round(float(values.mean()), 4), low, high)
