"""Whether priors pay: searches with and without one, over families of simulated compilers."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from smart_tuner.bench.compare import bootstrap_mean
from smart_tuner.bench.execute import execute_plans
from smart_tuner.bench.family_runs import COLD, KINDS, MEMBERS, WARM, FamilyPlan, play_family
from smart_tuner.bench.score import fraction
from smart_tuner.errors import UserInputError
from smart_tuner.model.files import whole_file, write_json
from smart_tuner.report.markdown import table
from smart_tuner.simulate.families import Family

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from smart_tuner.bench.execute import OnRun
    from smart_tuner.bench.run import Run, Task

POINTS = (10, 30, 60, 120)
ERROR_RATE = 0.05
SUMMARY_FILE, TABLES_FILE = "families.json", "families.md"
FAMILIES_A_SEED = 10_000
FAR = 120


@dataclass(frozen=True, slots=True)
class Cell:
    """One kind of family.

    Attributes:
        shared: Share of what matters that every member has in common.
        flipped: Share of the shared signs that differ between two members.
    """

    shared: float
    flipped: float

    @property
    def name(self) -> str:
        """``80 % shared, 15 % flipped``."""
        return f"{self.shared:.0%} shared, {self.flipped:.0%} flipped".replace("%", " %")


@dataclass(frozen=True, slots=True)
class FamilyComparison:
    """What is compared.

    Attributes:
        cells: Kinds of families.
        families: How many of each.
        taught: Trials of each sibling's study.
        trials: Trials of the searches that are compared.
        kinds: Where searches begin, of ``KINDS``.
        targets: Members of each family that are searched.
        seed: Which families.
        knobs: Knobs of each compiler.
    """

    cells: tuple[Cell, ...]
    families: int
    taught: int
    trials: int
    kinds: tuple[str, ...] = KINDS
    targets: int = MEMBERS
    seed: int = 0
    knobs: int = 209

    def plans(self) -> tuple[FamilyPlan, ...]:
        """Families, the first of each cell before the second: a comparison that is stopped is even."""
        first = self.seed * FAMILIES_A_SEED
        return tuple(
            FamilyPlan(
                Family(first + number, cell.shared, cell.flipped, self.knobs),
                self.taught,
                self.trials,
                self.kinds,
                self.targets,
            )
            for number in range(self.families)
            for cell in self.cells
        )


@dataclass(frozen=True, slots=True)
class Paired:
    """A mean difference of gain fractions, paired by member, over families.

    Attributes:
        cell: Kind of families.
        what: What is compared with what: ``warm at 30 - cold at 120``.
        families: How many.
        mean: Above 0: the first is better.
        low: Lower bound of the 95 % interval, families being the units.
        high: Upper bound.
    """

    cell: str
    what: str
    families: int
    mean: float
    low: float
    high: float


def parse_cells(text: str) -> tuple[Cell, ...]:
    """Read ``80:15,50:35``: percent shared and percent flipped.

    Raises:
        UserInputError: It is something else.
    """
    cells = []
    for part in text.split(","):
        shared, colon, flipped = part.strip().partition(":")
        if not (colon and shared.isdecimal() and flipped.isdecimal()):
            msg = f"--families {part!r}: give percent shared and flipped, as 80:15,50:35."
            raise UserInputError(msg)
        cells.append(Cell(int(shared) / 100, int(flipped) / 100))
        Family(0, cells[-1].shared, cells[-1].flipped)  # refuses what is out of bounds
    return tuple(dict.fromkeys(cells))


def compare_families(
    comparison: FamilyComparison, folder: Path, jobs: int, on_run: OnRun
) -> Mapping[str, object]:
    """Run what is missing; write summary and tables into the folder, and return the summary.

    Raises:
        StudyMismatch: The folder holds runs on another version of the simulator.
        StudyBusy: Another comparison works in the folder.
        UserInputError: The folder holds something else.
        EnvironmentNotFit: A worker was killed.
    """
    kept = execute_plans(comparison.plans(), play_family, folder, jobs, on_run)
    gains = {cell.name: _gains(comparison, cell, kept) for cell in comparison.cells}
    pairs = [asdict(item) for item in _differences(comparison, kept)]
    summary = {"comparison": asdict(comparison), "gain": gains, "differences": pairs}
    write_json(folder / SUMMARY_FILE, summary)
    with whole_file(folder / TABLES_FILE) as file:
        file.write("\n".join((*tables(summary), "")).encode())
    return summary


def tables(summary: Mapping[str, object]) -> Iterator[str]:
    """The summary as Markdown."""
    gains: Mapping[str, Mapping[str, Mapping[str, float]]] = summary["gain"]  # type: ignore[assignment]
    differences: Sequence[Mapping[str, object]] = summary["differences"]  # type: ignore[assignment]
    points = [*next(iter(next(iter(gains.values())).values()))]
    rows = (
        (cell, kind, *(f"{share:.2f}" for share in shares.values()))
        for cell, kinds in gains.items()
        for kind, shares in kinds.items()
    )
    yield from table(("family", "begins from", *(f"@{point}" for point in points)), rows)
    yield ""
    yield from table(
        ("family", "difference of gain fractions", "families", "mean", "95 %"),
        (
            (
                str(item["cell"]),
                str(item["what"]),
                str(item["families"]),
                f"{item['mean']:+.3f}",
                f"{item['low']:+.3f} to {item['high']:+.3f}",
            )
            for item in differences
        ),
    )


def _points(comparison: FamilyComparison) -> list[int]:
    return [point for point in POINTS if point <= comparison.trials]


def _gains(
    comparison: FamilyComparison, cell: Cell, runs: Mapping[Task, Run]
) -> dict[str, dict[str, float]]:
    """Mean gain fraction by kind and number of trials."""
    plans = [plan for plan in comparison.plans() if _is_of(plan, cell)]
    return {
        kind: {
            str(point): round(
                fmean(
                    fraction(runs[plan.task(kind, member)], point)
                    for plan in plans
                    for member in range(plan.targets)
                ),
                4,
            )
            for point in _points(comparison)
        }
        for kind in comparison.kinds
    }


def _differences(comparison: FamilyComparison, runs: Mapping[Task, Run]) -> Iterator[Paired]:
    points = _points(comparison)
    for cell in comparison.cells:
        for kind in comparison.kinds:
            if kind == COLD:
                continue
            wanted = [(point, point) for point in points]
            if kind == WARM and FAR in points:
                wanted += [(30, FAR), (60, FAR)]
            for here, there in wanted:
                yield _paired(comparison, (cell, kind), (here, there), runs)


def _paired(
    comparison: FamilyComparison,
    group: tuple[Cell, str],
    points: tuple[int, int],
    runs: Mapping[Task, Run],
) -> Paired:
    """Mean over the members of each family, then an interval over families."""
    cell, kind = group
    here, there = points
    values = np.array(
        [
            fmean(
                fraction(runs[plan.task(kind, member)], here)
                - fraction(runs[plan.task(COLD, member)], there)
                for member in range(plan.targets)
            )
            for plan in comparison.plans()
            if _is_of(plan, cell)
        ]
    )
    low, high = bootstrap_mean(values, ERROR_RATE)
    what = f"{kind} at {here} - {COLD} at {there}"
    return Paired(cell.name, what, values.size, round(float(values.mean()), 4), low, high)


def _is_of(plan: FamilyPlan, cell: Cell) -> bool:
    return (plan.family.shared, plan.family.flipped) == (cell.shared, cell.flipped)
