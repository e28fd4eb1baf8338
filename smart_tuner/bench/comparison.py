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
    from collections.abc import Callable
    from pathlib import Path

    from smart_tuner.bench.workloads import Workload

MAX_TRIALS = 10_000


@dataclass(frozen=True, slots=True)
class Plan:
    """What to compare.

    Attributes:
        samplers: Names.
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
        check_contestants(self.samplers)
        if not 1 <= self.trials <= MAX_TRIALS:
            msg = f"A run has 1 to {MAX_TRIALS} trials, not {self.trials}."
            raise UserInputError(msg)
        if self.against is not None and self.against not in self.samplers:
            msg = f"--against names {self.against!r}, which is not among --samplers."
            raise UserInputError(msg)
        if not self.generators and not self.recorded:
            msg = "There is nothing to compare on: name --generators or --recorded."
            raise UserInputError(msg)
        names = dict.fromkeys(self.samplers)
        return tuple(
            Task(name, workload, self.trials) for workload in self._workloads() for name in names
        )

    def _workloads(self) -> tuple[Workload, ...]:
        simulated = choose_workloads(
            self.generators,
            self.workloads,
            seed=self.seed,
            knobs=self.knobs,
            least_gain=self.least_gain,
        )
        recorded = recorded_workloads(
            self.recorded, self.workloads, seed=self.seed, least_gain=self.least_gain
        )
        return (*simulated, *recorded)


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
    rival = plan.against or plan.samplers[-1]
    described = {**asdict(plan), "recorded": [*map(str, plan.recorded)], "against": rival}
    summary = Summary(described, score(runs), compare(runs, rival), curves(runs))
    write_json(folder / SUMMARY_FILE, summary.to_json())
    write_page(summary, folder, f"{', '.join(plan.samplers)} compared")
    return summary
