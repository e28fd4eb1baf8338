"""The status of a study: running, stopped, finished; asking changes nothing."""

from __future__ import annotations

import fcntl
import io
import math
import shlex
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from filelock import FileLock
from rich.console import Console

from smart_tuner.errors import UserInputError
from smart_tuner.report.now import InFlight
from smart_tuner.report.page import write_report
from smart_tuner.report.status import StudyStatus, is_running, print_status, study_status
from smart_tuner.study.files.folder import StudyFolder
from smart_tuner.study.files.names import STUDY_NAME
from smart_tuner.study.proof.result import TuneResult, Verdict, write_result

if TYPE_CHECKING:
    from pathlib import Path

    import optuna

from smart_tuner.route.build_route import BuildRoute
from smart_tuner.samplers.registry import make_sampler
from smart_tuner.storages.ask import ask_trial
from smart_tuner.storages.journal import open_study
from smart_tuner.storages.tell import tell_trial
from smart_tuner.study.files.names import BASELINE_MS, SPENT
from smart_tuner.trial.trial import Trial, TrialOutcome

CHOICES = {"speed": ("slow", "fast"), "grave": ("no", "yes", "very", "so")}
DEFAULTS = {"speed": "slow", "grave": "no"}
SETTINGS = {"model": "/models/it's [a].onnx", "budget": 60.0, "metric": "linf"}
DOCUMENT: dict[str, Any] = {
    "seed": 1,
    "settings": SETTINGS,
    "identity": {},
    "accuracy": {"metric": "linf", "epsilon": 0.001},
    "space": {name: list(values) for name, values in CHOICES.items()},
    "base": {},
}


@pytest.fixture
def folder(tmp_path: Path) -> StudyFolder:
    """A study that was started and has no trial yet."""
    made = StudyFolder(tmp_path / "it's a study")
    made.create()
    made.write_settings(DOCUMENT)
    return made


def begin(folder: StudyFolder) -> optuna.Study:
    sampler = make_sampler("default", CHOICES, DEFAULTS, seed=1)
    study = open_study(folder.journal, STUDY_NAME, sampler, create=True)
    study.set_user_attr(BASELINE_MS, 2.0)
    study.set_user_attr(SPENT, 12.5)
    return study


def tell(study: optuna.Study, outcome: TrialOutcome) -> None:
    trial = ask_trial(study, CHOICES)
    route = BuildRoute.of(trial.params, DEFAULTS)
    tried = Trial(route=route, outcome=outcome, message="Broke | <here>.")
    tell_trial(study, trial, tried, 2.0, {"default": 1.0}, folder="trials/0")


def test_a_study_without_trials_is_stopped(folder: StudyFolder) -> None:
    for empty in (False, True):
        if empty:
            folder.journal.touch()  # killed between making the file and writing to it
        status = study_status(folder)
        assert status.state == "stopped"
        assert status.trials == {}
        assert status.baseline_ms is None
        assert (status.best_gain, status.best_route) == (1.0, "")
        assert status.budget_seconds == 60.0


def test_counts_and_budget_come_from_the_journal(folder: StudyFolder) -> None:
    study = begin(folder)
    tell(study, TrialOutcome.BUILD_FAILED)
    tell(study, TrialOutcome.RUN_FAILED)
    status = study_status(folder)
    assert status.trials == {"build_failed": 1, "run_failed": 1}
    assert status.spent_seconds == 12.5
    assert status.baseline_ms == 2.0
    assert status.verdict == ""


def test_the_command_that_continues_can_be_pasted(folder: StudyFolder) -> None:
    words = shlex.split(study_status(folder).command)
    assert words[:3] == ["smart-tuner", "tune", SETTINGS["model"]]
    assert words[3:5] == ["--study", str(folder.root)]


def test_a_held_study_is_running(folder: StudyFolder) -> None:
    assert not is_running(folder)
    with folder.locked():
        assert is_running(folder)
        assert study_status(folder).state == "running"
    assert not is_running(folder)


def test_two_that_ask_do_not_take_each_other_for_the_study(folder: StudyFolder) -> None:
    (folder.root / ".lock").touch()
    with (folder.root / ".lock").open() as other:
        fcntl.flock(other, fcntl.LOCK_SH)
        assert not is_running(folder)


def test_asking_changes_nothing(folder: StudyFolder) -> None:
    begin(folder)
    before = {path: path.stat().st_mtime_ns for path in folder.root.rglob("*")}
    study_status(folder)
    assert {path: path.stat().st_mtime_ns for path in folder.root.rglob("*")} == before


def test_a_writer_is_not_disturbed(folder: StudyFolder) -> None:
    study = begin(folder)
    with FileLock(folder.root / ".lock"):
        for number in range(6):
            tell(study, TrialOutcome.BUILD_FAILED)
            status = study_status(folder)
            assert status.state == "running"
            assert sum(status.trials.values()) == number + 1


def test_a_verdict_makes_it_finished(folder: StudyFolder) -> None:
    begin(folder)
    result = TuneResult(
        Verdict.DEFAULT_IS_BEST, "The default is best.", "", folder.root, 1.01, max_regression=0.05
    )
    write_result(folder.result_file, result)
    status = study_status(folder)
    assert (status.state, status.verdict) == ("finished", "The default is best.")


def test_no_study_and_a_damaged_one(tmp_path: Path, folder: StudyFolder) -> None:
    with pytest.raises(UserInputError, match="No study in"):
        study_status(StudyFolder(tmp_path / "gone"))
    begin(folder)
    text = folder.journal.read_bytes()
    folder.journal.write_bytes(b"no journal\n" + text)
    with pytest.raises(UserInputError, match=r"journal\.log is damaged"):
        study_status(folder)


def test_a_report_needs_a_verdict(folder: StudyFolder) -> None:
    begin(folder)
    with pytest.raises(UserInputError, match="No verdict in"):
        write_report(folder.root)
    assert not folder.report_file.exists()


STATUS = StudyStatus(
    study="/s",
    model="[m].onnx",
    state="stopped",
    trials={"feasible": 2, "timed_out": 1},
    spent_seconds=30.0,
    budget_seconds=60.0,
    baseline_ms=2.0,
    best_gain=1.2,
    best_route="-k=[a|b]",
    verdict="",
    command="smart-tuner tune m",
    best_trial=1,
    best_half_width=0.01,
    incumbents=(1.0, 1.2, 1.2),
)


def printed(status: StudyStatus) -> list[str]:
    file = io.StringIO()
    print_status(status, Console(file=file, width=20))
    return file.getvalue().splitlines()


def test_status_for_people() -> None:
    assert printed(STATUS) == [
        "[m].onnx: stopped",
        "  trials: 2 ok, 1 timed out",
        "  budget: 30 s of 60 s spent",
        "  baseline: 2 ms",
        "  best so far, not yet confirmed: 1.200x +-1.0 % (trial 1)  ▁██",
        "    -k=[a|b]",
        "  to continue: smart-tuner tune m",
    ]
    lossy = printed(replace(STATUS, accuracy="output 'y' (pair 'dog'): top1 0.1"))
    assert "  its largest loss: output 'y' (pair 'dog'): top1 0.1" in lossy
    ended = printed(replace(STATUS, state="finished", verdict="Good.", budget_seconds=math.inf))
    assert ended == [
        "[m].onnx: finished",
        "  trials: 2 ok, 1 timed out",
        "  budget: 30 s spent",
        "  baseline: 2 ms",
        "  verdict: Good.",
    ]
    assert printed(replace(STATUS, state="running", trials={}, baseline_ms=None)) == [
        "[m].onnx: running",
        "  trials: none yet",
        "  budget: 30 s of 60 s spent",
    ]


def test_what_a_running_study_is_at_for_people() -> None:
    trial = InFlight(3, "-k=b", "screening: 1 value that no route had", 65.0)
    changes = {"phase": "searching", "noise": 0.004, "in_flight": (trial,), "best_trial": None}
    lines = printed(replace(STATUS, state="running", **changes))  # type: ignore[arg-type]
    assert lines[0] == "[m].onnx: running, searching"
    assert lines[4:] == [
        "  noise: +-0.4 % on a trial's gain",
        "  best so far: the default",
        "  now: trial 3 (1:05), screening: 1 value that no route had",
        "    -k=b",
    ]


def test_what_a_running_study_is_at(folder: StudyFolder) -> None:
    with folder.locked():
        assert study_status(folder).phase == "preparing"
        study = begin(folder)
        tell(study, TrialOutcome.FEASIBLE)
        trial = ask_trial(study, CHOICES)
        status = study_status(folder)
        assert status.phase == "searching"
        assert [(item.number, item.route) for item in status.in_flight] == [
            (1, str(BuildRoute.of(trial.params, DEFAULTS)))
        ]
        assert status.in_flight[0].why.startswith("screening: ")
        assert 0 <= status.in_flight[0].seconds < 60
        assert 12.5 <= status.spent_seconds < 72.5
        tell_trial(study, trial, Trial(BuildRoute(), TrialOutcome.TIMED_OUT), 2.0, {"default": 1})
        folder.finalists.mkdir(parents=True)
        assert study_status(folder).phase == "confirming"
    assert study_status(folder).phase == ""


def test_a_study_can_be_read_where_it_cannot_be_written(
    folder: StudyFolder, tmp_path: Path
) -> None:
    begin(folder)
    copy = StudyFolder(tmp_path / "copy")
    shutil.copytree(folder.root, copy.root, ignore=shutil.ignore_patterns(".lock"))
    study_status(copy)
    assert not (copy.root / ".lock").exists()
