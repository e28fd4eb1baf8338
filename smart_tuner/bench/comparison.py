"""The whole comparison: from names to scores."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from smart_tuner.bench.compare import compare
from smart_tuner.bench.execute import execute
from smart_tuner.bench.page import write_page
from smart_tuner.bench.run import Task
from smart_tuner.bench.samplers import check_contestants
from smart_tuner.bench.score import curves, score
from smart_tuner.bench.summary import SUMMARY_FILE, Summary
from smart_tuner.bench.workloads import LEAST_GAIN, choose_workloads, recorded_workloads
from smart_tuner.errors import UserInputError
from smart_tuner.model.files import write_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from smart_tuner.bench.workloads import Workload

MAX_TRIALS = 10_000


@dataclass(frozen=True, slots=True)
class Plan:
    """What to compare.

    Attributes:
        samplers: Names; ``name:N`` for a slow one that runs on the first N workloads of each kind.
        generators: Names.
        workloads: How many of each generator.
        trials: Of each run.
        seed: Which workloads.
        against: The rival that differences are taken from; the last sampler if ``None``.
        knobs: Knobs of each workload.
        least_gain: Smallest attainable gain of a workload.
        recorded: Files and folders of recorded compilers, compared on beside the generators.
    """

    samplers: tuple[str, ...]
    generators: tuple[str, ...]
    workloads: int
    trials: int
    seed: int
    against: str | None = None
    knobs: int = 209
    least_gain: float = LEAST_GAIN
    recorded: tuple[Path, ...] = ()

    def tasks(self) -> tuple[Task, ...]:
        """The runs, workload by workload, so that a comparison that is stopped is still paired.

        Raises:
            UserInputError: A name or a number is not possible.
        """
        limits = _limits(self.samplers)
        check_contestants(tuple(limits))
        if not 1 <= self.trials <= MAX_TRIALS:
            msg = f"A run has 1 to {MAX_TRIALS} trials, not {self.trials}."
            raise UserInputError(msg)
        if self.against is not None and self.against not in limits:
            msg = f"--against names {self.against!r}, which is not among --samplers."
            raise UserInputError(msg)
        if not self.generators and not self.recorded:
            msg = "There is nothing to compare on: name --generators or --recorded."
            raise UserInputError(msg)
        return tuple(
            Task(name, workload, self.trials)
            for members in self._workloads()
            for position, workload in enumerate(members)
            for name, limit in limits.items()
            if limit is None or position < limit
        )

    def _workloads(self) -> Iterator[tuple[Workload, ...]]:
        """Kind by kind."""
        for name in dict.fromkeys(self.generators):
            yield choose_workloads(
                [name],
                self.workloads,
                seed=self.seed,
                knobs=self.knobs,
                least_gain=self.least_gain,
            )
        for path in self.recorded:
            yield recorded_workloads(
                [path], self.workloads, seed=self.seed, least_gain=self.least_gain
            )

    @property
    def rival(self) -> str:
        """The rival's name."""
        return self.against or tuple(_limits(self.samplers))[-1]


def _limits(samplers: Iterable[str]) -> dict[str, int | None]:
    """Sampler names, each with its largest number of workloads of a kind."""
    limits: dict[str, int | None] = {}
    for text in samplers:
        name, colon, number = text.partition(":")
        if colon and not (number.isascii() and number.isdigit() and int(number)):
            msg = f"--samplers {text!r}: after the colon comes a number of workloads, as smac:20."
            raise UserInputError(msg)
        limits[name] = int(number) if colon else None
    return limits


def run_comparison(
    plan: Plan, folder: Path, jobs: int, on_run: Callable[[int, int], None]
) -> Summary:
    """Run what is missing, score everything, and write summary, tables and plots into the folder.

    Args:
        plan: What to compare.
        folder: Where runs and results are kept.
        jobs: How many processes work.
        on_run: Hears how many of how many runs are finished.
    """
    runs = execute(plan.tasks(), folder, jobs, on_run)
    described = {**asdict(plan), "recorded": [*map(str, plan.recorded)], "against": plan.rival}
    summary = Summary(described, score(runs), compare(runs, plan.rival), curves(runs))
    write_json(folder / SUMMARY_FILE, summary.to_json())
    write_page(summary, folder, f"{', '.join(plan.samplers)} compared")
    return summary
