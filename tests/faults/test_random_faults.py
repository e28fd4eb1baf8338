"""Faults in random order at random moments, on a leading session and a worker of its own.

The suite runs a few seeds; ``pytest tests/faults --fault-seeds 50`` runs more.
"""

import contextlib
import json
import os
import random
import resource
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest
from optuna.trial import TrialState

from smart_tuner.devices.cpu import cpu_quota
from smart_tuner.storages.history import finished_trials
from tests.faults.victim import Session, Victim

WORKERS = min(2, cpu_quota())
OPTIONS = (*("--seed", "5", "--budget", "10m", "--min-gain", "9"), "--workers", str(WORKERS))

CLOCK = """
import time
_time, _start = time.time, time.monotonic()
time.time = lambda: _time() - 3600 * (time.monotonic() - _start > 3)
"""
"""A clock that an administrator sets back by an hour after three seconds."""


ENDED = contextlib.suppress(psutil.NoSuchProcess)
"""A process may end at any moment, before anything is done to it."""


def family(session: Session) -> tuple[list[psutil.Process], list[psutil.Process]]:
    """Workers of a leading session, and children of either that build and measure."""
    lines = []
    for process in psutil.Process(session.process.pid).children(recursive=True):
        with ENDED:
            lines.append((process, " ".join(process.cmdline())))
    workers = [process for process, line in lines if " worker " in line]
    return workers, [process for process, line in lines if "trial.child" in line]


def kill_leader(session: Session, dice: random.Random) -> None:
    session.send(signal.SIGKILL)


def terminate_leader(session: Session, dice: random.Random) -> None:
    session.send(dice.choice([signal.SIGTERM, signal.SIGINT]))


def kill_worker(session: Session, dice: random.Random) -> None:
    for process in family(session)[0]:
        with ENDED:
            process.kill()


def kill_children(session: Session, dice: random.Random) -> None:
    for process in family(session)[1]:
        if dice.random() < 0.7:
            with ENDED:
                process.kill()


def freeze_children(session: Session, dice: random.Random) -> None:
    for process in family(session)[1]:
        with ENDED:
            process.suspend()
    time.sleep(0.5)
    session.send(signal.SIGTERM)


FAULTS: Mapping[str, Callable[[Session, random.Random], None]] = {
    "kill leader": kill_leader,
    "terminate leader": terminate_leader,
    "kill worker": kill_worker,
    "kill children": kill_children,
    "freeze children": freeze_children,
}
"""What is done to a session at a random moment."""

SETTINGS = ("full disk", "clock", "torn journal")
"""What a session begins with."""


def begin(victim: Victim, fault: str, trials: int) -> Session:
    """Start a session in the world that the fault makes of it."""
    options: dict[str, Any] = {}
    journal = victim.study / "journal.log"
    if fault == "full disk":
        size = (journal.stat().st_size if journal.exists() else 0) + 9000
        options["prepare"] = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    if fault == "clock":
        place = victim.temporary.parent / "clock"
        place.mkdir(exist_ok=True)
        (place / "sitecustomize.py").write_text(CLOCK)
        paths = (str(place), os.environ.get("PYTHONPATH", ""))
        options["environment"] = {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    if fault == "torn journal" and journal.exists():
        journal.write_bytes(journal.read_bytes() + b'{"op_code":5,"trial_id":1,"param_na')
    return victim.start(*OPTIONS, "--trials", str(trials), **options)


def suffer(victim: Victim, fault: str, dice: random.Random, trials: int) -> None:
    session = begin(victim, fault, trials)
    if fault in FAULTS:
        session.wait_for(dice.choice([r"^\[baseline\]", r"^\[search\]", r"^trial", r"^trial"]))
        time.sleep(dice.uniform(0.0, 1.5))
        if session.process.poll() is None:
            FAULTS[fault](session, dice)
    code = session.finish()
    assert "Traceback" not in session.text, session.text
    # Without a baseline nothing can be tuned, whoever killed it.
    allowed = (0, 2, 3, 130) if fault == "kill children" else (0, 3, 130, -signal.SIGKILL)
    assert code in allowed, session.text
    if code > 0:
        assert "smart-tuner: " in session.text, "it says what happened"
    victim.wait_until_alone()


@pytest.mark.timeout(900)
def test_nothing_is_lost_or_counted_twice(victim: Victim, fault_seed: int) -> None:
    dice = random.Random(fault_seed)
    finished: list[int] = []
    for fault in dice.sample([*FAULTS, *SETTINGS], 3):
        suffer(victim, fault, dice, len(finished) + 6)
        before, finished = finished, victim.ends()
        assert finished[: len(before)] == before, f"what was finished stays: {fault}"
        assert len(finished) == len(set(finished)), f"no trial ends twice: {fault}"
    study = victim.optuna_study()
    done = len(finished_trials(study)) if study is not None else 0
    session = victim.start(*OPTIONS, "--trials", str(done + 2))
    assert session.finish() == 0, session.text
    victim.wait_until_alone()
    assert victim.leftovers() == []
    check_end(victim, done + 2)


def check_end(victim: Victim, expected: int) -> None:
    """The study is whole: each trial ended once, with a result, and no route was tried twice."""
    study = victim.optuna_study()
    assert study is not None
    assert study.get_trials(states=(TrialState.RUNNING, TrialState.WAITING)) == []
    records = finished_trials(study)
    assert len(records) == expected
    routes = [str(record.route) for record in records]
    assert len(routes) == len(set(routes))
    for record in records:
        assert (victim.study / record.folder / "result.json").is_file()
    result = json.loads((victim.study / "result.json").read_text())
    assert sum(result["trials"].values()) == expected
    assert list(Path(victim.study / "workers").glob("*/")) == []
