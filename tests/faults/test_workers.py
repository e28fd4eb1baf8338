"""Workers that come and go, on one machine and through a real PostgreSQL, and are killed."""

from __future__ import annotations

import json
import random
import signal
import time
from typing import TYPE_CHECKING

import pytest
from optuna.trial import TrialState

from smart_tuner.storages.history import finished_trials
from smart_tuner.study.files.folder import StudyFolder
from smart_tuner.study.files.kept import open_kept_study
from smart_tuner.study.progress.crew import STOP
from tests.faults.victim import PATIENCE, Victim
from tests.postgres import Server, running_server

if TYPE_CHECKING:
    from collections.abc import Iterator

OPTIONS = ("--seed", "5", "--budget", "10m", "--min-gain", "9")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_server() as server:
        yield server


def until_there_is_a_study(victim: Victim) -> None:
    deadline = time.monotonic() + PATIENCE
    while not StudyFolder(victim.study).exists:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def check(victim: Victim, trials: int) -> set[str]:
    """Every trial ended once, with a result; returns the workers that tried some."""
    study = open_kept_study(StudyFolder(victim.study))
    assert study.get_trials(states=(TrialState.RUNNING, TrialState.WAITING)) == []
    records = finished_trials(study)
    assert len(records) == trials
    assert len({record.route for record in records}) == trials, "no route twice"
    numbers = [trial.number for trial in study.get_trials()]
    assert numbers == list(range(len(numbers)))
    for record in records:
        assert (victim.study / record.folder / "result.json").is_file()
    result = json.loads((victim.study / "result.json").read_text())
    assert sum(result["trials"].values()) == trials
    done = [study.get_trials()[record.number].user_attrs["worker"] for record in records]
    return set(done)


def work_and_kill(victim: Victim, options: tuple[str, ...], workers: int, kills: int) -> set[str]:
    """Let workers come, finish trials and be killed; stop; let another session conclude.

    Returns:
        The workers that finished trials.
    """
    dice = random.Random(7)
    leader = victim.start(*options, "--trials", "200")
    until_there_is_a_study(victim)
    crew = [victim.start_worker() for _ in range(workers)]
    for worker in crew:
        worker.wait_for(r"^trial ")
    for _ in range(kills):
        gone = dice.randrange(workers)
        time.sleep(dice.uniform(0.0, 1.0))
        crew[gone].send(signal.SIGKILL)
        crew[gone].finish()
        crew[gone] = victim.start_worker()
        crew[gone].wait_for(r"^trial ")
    leader.send(signal.SIGTERM)
    assert leader.finish() == 130, leader.text
    for worker in crew:
        assert worker.finish() == 0, worker.text
        assert "the leading session was interrupted" in worker.text
    victim.wait_until_alone()
    done = len(finished_trials(open_kept_study(StudyFolder(victim.study))))
    leader = victim.start(*options, "--trials", str(done + 2))
    assert leader.finish() == 0, leader.text
    return check(victim, done + 2)


@pytest.mark.timeout(900)
def test_two_workers_finish_a_study_though_one_is_killed(victim: Victim) -> None:
    assert len(work_and_kill(victim, OPTIONS, workers=1, kills=1)) == 4


@pytest.mark.timeout(900)
def test_four_workers_finish_a_study_in_postgresql_though_one_is_killed(
    victim: Victim, server: Server
) -> None:
    server.empty()
    options = (*OPTIONS, "--storage", server.url)
    assert len(work_and_kill(victim, options, workers=3, kills=1)) == 6
    assert (victim.study / "artifacts").is_dir(), "logs are kept for Optuna's dashboard"
    assert not (victim.study / "journal.log").exists()


@pytest.mark.timeout(900)
def test_a_database_that_is_killed_is_named_and_the_same_command_goes_on(victim: Victim) -> None:
    with running_server() as server:
        options = (*OPTIONS, "--storage", server.url)
        leader = victim.start(*options, "--trials", "200")
        leader.wait_for(r"^trial   3 ")
        server.kill()
        assert leader.finish() == 3
        said = [line for line in leader.text.splitlines() if line.startswith("smart-tuner: ")]
        assert f"The database {server.url} cannot be used" in said[-1]
        assert "Traceback" not in leader.text
        victim.wait_until_alone()
        server.start()
        leader = victim.start(*options, "--trials", "7")
        assert leader.finish() == 0, leader.text
        check(victim, 7)


@pytest.mark.timeout(900)
def test_a_leader_that_is_killed_is_succeeded_while_a_worker_goes_on(victim: Victim) -> None:
    leader = victim.start(*OPTIONS, "--trials", "200")
    leader.wait_for(r"^trial   1 ")
    worker = victim.start_worker()
    worker.wait_for(r"^trial ")
    leader.send(signal.SIGKILL)
    leader.finish()
    worker.wait_for(r"^trial ")
    leader = victim.start(*OPTIONS, "--trials", "200")
    leader.wait_for(r"^trial ")
    worker.wait_for(r"^trial ")
    leader.send(signal.SIGTERM)
    assert leader.finish() == 130, leader.text
    assert worker.finish() == 0, worker.text
    done = len(finished_trials(open_kept_study(StudyFolder(victim.study))))
    leader = victim.start(*OPTIONS, "--trials", str(done + 1))
    assert leader.finish() == 0, leader.text
    assert len(check(victim, done + 1)) == 4


def test_a_worker_is_told_when_the_search_is_over_or_its_platform_is_another(
    victim: Victim,
) -> None:
    leader = victim.start(*OPTIONS, "--trials", "1")
    assert leader.finish() == 0, leader.text
    worker = victim.start_worker()
    assert worker.finish() == 0, worker.text
    assert "0 trials; the search is over; `smart-tuner tune` goes on" in worker.text
    open_kept_study(StudyFolder(victim.study)).set_user_attr(STOP, "")
    settings = victim.study / "study.toml"
    settings.write_text(settings.read_text().replace('device = "simulated"', 'device = "A100"'))
    worker = victim.start_worker()
    assert worker.finish() == 2
    last = worker.text.splitlines()[-1]
    assert "cannot join the study" in last
    assert "device was A100, is simulated" in last
    assert list((victim.study / "workers").glob("*")) == []
