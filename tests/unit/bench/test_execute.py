from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from filelock import FileLock

from smart_tuner.bench.execute import LOCK_FILE, RUNS_FILE, execute
from smart_tuner.bench.run import Run, Task
from smart_tuner.bench.workloads import Workload
from smart_tuner.errors import StudyBusy, StudyMismatch, UserInputError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

TASKS = tuple(
    Task(name, Workload("sparse", seed, 8), 5) for seed in (0, 1) for name in ("fast", "random-3")
)


def untimed(runs: Sequence[Run]) -> list[Run]:
    return [replace(run, ask_seconds=()) for run in runs]


class Heard(list[tuple[int, int]]):
    def __call__(self, done: int, total: int) -> None:
        self.append((done, total))


def test_runs_come_in_the_order_of_the_tasks_and_are_kept(tmp_path: Path) -> None:
    heard = Heard()
    runs = execute(TASKS, tmp_path, 1, heard)
    assert [run.task for run in runs] == list(TASKS)
    assert heard == [(n, 4) for n in range(5)]
    lines = (tmp_path / RUNS_FILE).read_text().splitlines()
    assert [Run.from_line(line) for line in lines] == list(runs)


def test_what_was_killed_goes_on(tmp_path: Path) -> None:
    whole = execute(TASKS, tmp_path / "whole", 1, Heard())
    path = tmp_path / RUNS_FILE
    text = (tmp_path / "whole" / RUNS_FILE).read_text()
    lines = text.splitlines(keepends=True)
    path.write_text("".join(lines[:2]) + lines[2][:100])  # killed while it wrote the third
    heard = Heard()
    assert untimed(execute(TASKS, tmp_path, 1, heard)) == untimed(whole)
    assert heard[0] == (2, 4)
    assert path.read_text().startswith("".join(lines[:2]))
    execute(TASKS, tmp_path, 1, heard := Heard())
    assert heard == [(4, 4)]


def test_several_processes_give_the_same_runs(tmp_path: Path) -> None:
    alone = execute(TASKS[:2], tmp_path / "alone", 1, Heard())
    shared = execute(TASKS[:2], tmp_path / "shared", 2, Heard())
    assert untimed(shared) == untimed(alone)


def test_a_folder_may_be_shared_by_comparisons_that_follow_each_other(tmp_path: Path) -> None:
    execute(TASKS[:2], tmp_path, 1, Heard())
    runs = execute(TASKS, tmp_path, 1, heard := Heard())
    assert heard[0] == (2, 4)
    assert len(runs) == 4


def test_runs_on_another_version_of_a_compiler_are_not_mixed_in(tmp_path: Path) -> None:
    (run,) = execute(TASKS[:1], tmp_path, 1, Heard())
    (tmp_path / RUNS_FILE).write_text(replace(run, digest="0" * 16).to_line() + "\n")
    with pytest.raises(StudyMismatch, match="another version"):
        execute(TASKS[:1], tmp_path, 1, Heard())


def test_a_folder_is_used_by_one_at_a_time(tmp_path: Path) -> None:
    with FileLock(tmp_path / LOCK_FILE), pytest.raises(StudyBusy, match="another comparison"):
        execute(TASKS[:1], tmp_path, 1, Heard())


def test_a_spoilt_line_is_named(tmp_path: Path) -> None:
    (tmp_path / RUNS_FILE).write_text("{}\n")
    with pytest.raises(UserInputError, match="line 1: Not a run"):
        execute(TASKS[:1], tmp_path, 1, Heard())
