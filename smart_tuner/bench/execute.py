"""Runs many searches over the processors, and goes on where an earlier call was stopped."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from filelock import FileLock, Timeout

from smart_tuner.bench.play import play
from smart_tuner.bench.run import Run
from smart_tuner.errors import EnvironmentNotFit, StudyBusy, StudyMismatch, UserInputError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
    from pathlib import Path
    from typing import TypeVar

    from smart_tuner.bench.run import Task

    Piece = TypeVar("Piece")
    Result = TypeVar("Result")
    PlanT = TypeVar("PlanT", bound="Plan")
    OnRun = Callable[[int, int], None]

RUNS_FILE = "runs.jsonl"
LOCK_FILE = "bench.lock"


@dataclass(frozen=True, slots=True)
class Ledger:
    """The finished runs in a folder, one a line, in the order in which they ended.

    Attributes:
        folder: The output folder.
    """

    folder: Path

    @property
    def path(self) -> Path:
        """The file."""
        return self.folder / RUNS_FILE

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Hold the folder, and cut off a line that a killed process left unfinished.

        Raises:
            EnvironmentNotFit: The folder cannot be made.
            StudyBusy: Another comparison works in it.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            msg = f"{self.folder}: cannot be made: {error.strerror}; choose another --out."
            raise EnvironmentNotFit(msg) from error
        try:
            with FileLock(self.folder / LOCK_FILE, timeout=0):
                self._cut()
                yield
        except Timeout:
            msg = f"{self.folder}: another comparison runs there; choose another --out."
            raise StudyBusy(msg) from None

    def read(self) -> dict[Task, Run]:
        """Return every run that is kept, by its task.

        Raises:
            UserInputError: A line is not a run.
        """
        if not self.path.exists():
            return {}
        runs = {}
        for number, line in enumerate(self.path.read_text("utf-8").splitlines(), start=1):
            try:
                run = Run.from_line(line)
            except UserInputError as error:
                msg = f"{self.path}, line {number}: {error} Use a new --out."
                raise UserInputError(msg) from None
            runs[run.task] = run
        return runs

    def append(self, run: Run) -> None:
        """Add a run, in one write."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(run.to_line() + "\n")

    def _cut(self) -> None:
        if self.path.exists():
            data = self.path.read_bytes()
            whole = data.rfind(b"\n") + 1
            if whole < len(data):
                os.truncate(self.path, whole)


def execute(tasks: Sequence[Task], folder: Path, jobs: int, on_run: OnRun) -> tuple[Run, ...]:
    """Run what is not yet in the folder, and return the run of each task.

    Args:
        tasks: What to run, in this order.
        folder: Where runs are kept; a later call with other tasks may share it.
        jobs: How many processes work; 1 works in this one.
        on_run: Hears how many of how many runs are finished, at once and after each.

    Raises:
        StudyMismatch: A kept run was made on another version of its compiler.
        StudyBusy: Another comparison works in the folder.
        UserInputError: The folder holds something else.
        EnvironmentNotFit: A sampler's package is missing, or a worker was killed.
    """
    ledger = Ledger(folder)
    with ledger.opened():
        kept = ledger.read()
        _check_versions(kept, tasks, lambda task: task.workload.compiler().digest())
        missing = [task for task in dict.fromkeys(tasks) if task not in kept]
        total, done = len(dict.fromkeys(tasks)), len(dict.fromkeys(tasks)) - len(missing)
        on_run(done, total)
        with contextlib.closing(played_in_processes(play, missing, jobs)) as runs:
            for run in runs:
                ledger.append(run)
                kept[run.task] = run
                done += 1
                on_run(done, total)
    return tuple(kept[task] for task in dict.fromkeys(tasks))


class Plan(Protocol):
    """Runs that are made together, for instance since some begin from what others taught."""

    def tasks(self) -> Iterable[Task]:
        """What it runs."""

    def digest(self, task: Task) -> str:
        """Of what it runs a task on, today: kept runs on something else are refused."""


def execute_plans(
    plans: Sequence[PlanT],
    work: Callable[[PlanT], Iterable[Run]],
    folder: Path,
    jobs: int,
    on_run: OnRun,
) -> dict[Task, Run]:
    """Carry out the plans of which the folder lacks a run, and return every run that it holds.

    Args:
        plans: What to run, in this order.
        work: Makes the runs of one plan; a function of a module.
        folder: Where runs are kept.
        jobs: How many processes work; 1 works in this one.
        on_run: Hears how many of how many plans are finished, at once and after each.

    Raises:
        StudyMismatch: A kept run was made on another version of its compiler.
        StudyBusy: Another comparison works in the folder.
        UserInputError: The folder holds something else.
        EnvironmentNotFit: A worker was killed.
    """
    ledger = Ledger(folder)
    with ledger.opened():
        kept = ledger.read()
        for plan in plans:
            _check_versions(kept, plan.tasks(), plan.digest)
        missing = [plan for plan in plans if not kept.keys() >= {*plan.tasks()}]
        done = len(plans) - len(missing)
        on_run(done, len(plans))
        with contextlib.closing(played_in_processes(work, missing, jobs)) as results:
            for runs in results:
                for run in runs:
                    ledger.append(run)
                    kept[run.task] = run
                done += 1
                on_run(done, len(plans))
    return kept


def _check_versions(
    kept: dict[Task, Run], tasks: Iterable[Task], digest: Callable[[Task], str]
) -> None:
    """Refuse kept runs on what is another compiler today, or began from another prior."""
    for task in tasks:
        run = kept.get(task)
        if run is not None and run.digest != digest(task)[: len(run.digest)]:
            msg = (
                f"The runs on {task.workload.name} in this folder were made on another version of "
                "that compiler, or of what taught them; use a new --out."
            )
            raise StudyMismatch(msg)


def played_in_processes(
    work: Callable[[Piece], Result], pieces: Sequence[Piece], jobs: int
) -> Generator[Result, None, None]:
    """Do pieces of work, each in a process, and give the results as they come.

    Args:
        work: A function of a module, which a new process can import.
        pieces: What to do.
        jobs: How many processes; 1 works in this one.

    Raises:
        EnvironmentNotFit: A worker was killed.
    """
    if jobs == 1 or len(pieces) < 2:
        yield from map(work, pieces)
        return
    context = multiprocessing.get_context("spawn")  # a fork would copy locks of numpy's threads
    pool = ProcessPoolExecutor(min(jobs, len(pieces)), context, initializer=_leave_to_the_parent)
    others = set(multiprocessing.active_children())
    try:
        futures = [pool.submit(work, piece) for piece in pieces]
        for future in as_completed(futures):
            yield future.result()
    except BrokenProcessPool:
        msg = "A worker was killed, maybe for want of memory; the same command goes on, try fewer --jobs."
        raise EnvironmentNotFit(msg) from None
    finally:
        for worker in set(multiprocessing.active_children()) - others:
            worker.terminate()
        pool.shutdown(cancel_futures=True)


def _leave_to_the_parent() -> None:
    """Ctrl-C reaches the whole group; the parent ends its workers itself."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
