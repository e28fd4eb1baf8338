from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import namedtuple
from typing import TYPE_CHECKING, NoReturn

import optuna
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState

from smart_tuner.errors import EnvironmentNotFit, UserInputError
from smart_tuner.samplers.registry import make_sampler
from smart_tuner.storages.ask import ask_trial, fail_stale
from smart_tuner.storages.history import finished_trials
from smart_tuner.storages.journal import network_note, open_study, prepare_journal
from smart_tuner.storages.journal_file import fold
from smart_tuner.storages.tell import tell_trial
from smart_tuner.testing.storage_contract import tried
from smart_tuner.trial.trial import TrialOutcome

if TYPE_CHECKING:
    from pathlib import Path

CHOICES = {f"knob {i}": ("on", "off") for i in range(5)}
Partition = namedtuple("Partition", ["mountpoint", "fstype"])


def study_at(journal: Path, *, create: bool = True) -> optuna.Study:
    sampler = make_sampler("default", CHOICES, dict.fromkeys(CHOICES, "on"), 3)
    return open_study(journal, "s", sampler, create=create)


def run_trials(study: optuna.Study, count: int) -> None:
    for _ in range(count):
        trial = tried(TrialOutcome.FEASIBLE, -0.01)
        tell_trial(study, ask_trial(study, CHOICES), trial, 5.0, {"small": 1.0, "large": 1.0})


def test_a_study_reads_back_as_it_was(tmp_path: Path) -> None:
    study = study_at(tmp_path / "journal.log")
    run_trials(study, 3)
    ask_trial(study, CHOICES)
    again = study_at(tmp_path / "journal.log", create=False)
    assert again.trials == study.trials
    assert again.direction == optuna.study.StudyDirection.MINIMIZE
    assert [path.name for path in tmp_path.iterdir()] == ["journal.log"]


def test_optuna_alone_can_read_the_journal(tmp_path: Path) -> None:
    study = study_at(tmp_path / "journal.log")
    run_trials(study, 3)
    ask_trial(study, CHOICES)
    backend = JournalFileBackend(str(tmp_path / "journal.log"))
    plain = optuna.load_study(study_name="s", storage=JournalStorage(backend))
    assert plain.trials == study.trials


def test_a_new_trial_is_one_record(tmp_path: Path) -> None:
    journal = tmp_path / "journal.log"
    study = study_at(journal)
    before = journal.read_bytes()
    ask_trial(study, CHOICES)
    added = journal.read_bytes()[len(before) :]
    assert added.count(b"\n") == 1
    assert json.loads(added)["params"].keys() == CHOICES.keys()


class Broken(optuna.samplers.RandomSampler):
    def sample_relative(self, study: object, trial: object, search_space: object) -> NoReturn:
        raise RuntimeError("broken")


def test_a_sampler_that_fails_leaves_no_trial_in_flight(tmp_path: Path) -> None:
    study = study_at(tmp_path / "journal.log")
    study.sampler = Broken()
    with pytest.raises(RuntimeError, match="broken"):
        ask_trial(study, CHOICES)
    trials = study_at(tmp_path / "journal.log", create=False).trials
    assert [trial.state for trial in trials] == [TrialState.FAIL]
    assert trials[0].user_attrs["message"] == "broken"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    journal = tmp_path_factory.mktemp("whole") / "journal.log"
    run_trials(study_at(journal), 4)
    return journal.read_bytes()


@settings(suppress_health_check=list(HealthCheck), max_examples=60, deadline=None)
@given(data=st.data())
def test_any_torn_end_is_mended(tmp_path: Path, whole: bytes, data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(whole)))
    noise = data.draw(
        st.sampled_from([b"", b"\0" * 100, b"\0\n", b'{"op_code":', b'{"op_code":4,"x\n'])
    )
    journal = tmp_path / "journal.log"
    journal.write_bytes(whole[:cut] + noise)
    kept = [line for line in whole[:cut].split(b"\n")[:-1] if line]
    notes = prepare_journal(journal)
    lines = journal.read_bytes().splitlines()
    assert lines[: len(kept)] == kept
    assert len(lines) <= len(kept) + 1
    assert len(notes) <= 1
    study = study_at(journal)
    finished = len(finished_trials(study))
    assert finished >= sum(b'"state":1,"values":[' in line for line in kept)
    fail_stale(study)
    run_trials(study, 1)
    assert len(finished_trials(study_at(journal, create=False))) == finished + 1


@pytest.mark.parametrize("cut", [0, 1, 5, 40])
def test_two_torn_first_appends_are_no_foreign_file(
    tmp_path: Path, whole: bytes, cut: int
) -> None:
    journal = tmp_path / "journal.log"
    journal.write_bytes(whole[:cut] + b'{"op_code":')
    prepare_journal(journal)
    assert journal.read_bytes() == b""


def test_a_record_that_only_lacks_its_line_end_is_kept(tmp_path: Path, whole: bytes) -> None:
    journal = tmp_path / "journal.log"
    journal.write_bytes(whole[:-1])
    assert "kept" in prepare_journal(journal)[0]
    assert journal.read_bytes() == whole
    assert prepare_journal(journal) == ()


def test_another_process_s_torn_append_is_cut_before_the_next(tmp_path: Path) -> None:
    journal = tmp_path / "journal.log"
    study = study_at(journal)
    run_trials(study, 1)
    with journal.open("ab") as file:
        file.write(b'{"op_code":4,"wor')
    run_trials(study, 1)
    assert len(finished_trials(study_at(journal, create=False))) == 2
    assert prepare_journal(journal) == ()


def test_damage_in_the_middle_is_named(tmp_path: Path, whole: bytes) -> None:
    lines = whole.splitlines(keepends=True)
    journal = tmp_path / "journal.log"
    damaged = b"".join([*lines[:3], b"\0\0\n", *lines[3:]])
    journal.write_bytes(damaged)
    with pytest.raises(UserInputError, match=r"line 4.*head -n 3"):
        study_at(journal, create=False)
    assert journal.read_bytes() == damaged


@pytest.mark.parametrize("content", [b"dear diary\n", b"\x7fELF\x00", b"{}\n", b"[1,2]"])
def test_a_file_that_is_no_journal_is_left_alone(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "journal.log").write_bytes(content)
    with pytest.raises(UserInputError, match="not an Optuna journal"):
        study_at(tmp_path / "journal.log")
    assert (tmp_path / "journal.log").read_bytes() == content


def test_a_missing_study_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(UserInputError, match="No journal"):
        study_at(tmp_path / "journal.log", create=False)
    assert not list(tmp_path.iterdir())
    (tmp_path / "journal.log").touch()
    with pytest.raises(UserInputError, match="No study 's'"):
        study_at(tmp_path / "journal.log", create=False)
    with pytest.raises(EnvironmentNotFit, match="Cannot create"):
        study_at(tmp_path / "none" / "journal.log")


def test_a_deleted_journal_is_one_clear_line(tmp_path: Path) -> None:
    study = study_at(tmp_path / "journal.log")
    (tmp_path / "journal.log").unlink()
    with pytest.raises(EnvironmentNotFit, match="Cannot write"):
        ask_trial(study, CHOICES)


FULL_DISK = """
import resource, sys
from pathlib import Path
from smart_tuner.errors import EnvironmentNotFit
from test_journal import run_trials, study_at
journal = Path(sys.argv[1])
study = study_at(journal)
run_trials(study, 1)
room = journal.stat().st_size + int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
try:
    run_trials(study, 1)
except EnvironmentNotFit as error:
    print(error)
"""


@pytest.mark.parametrize("room", [0, 100, 900])
def test_a_full_disk_is_one_clear_error_and_the_next_start_works(
    tmp_path: Path, room: int
) -> None:
    journal = tmp_path / "journal.log"
    command = [sys.executable, "-c", FULL_DISK, str(journal), str(room)]
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(__file__)}  # noqa: PTH120
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.startswith(f"Cannot write to {journal}")
    assert done.stdout.count("\n") == 1
    assert prepare_journal(journal) == ()
    study = study_at(journal)
    fail_stale(study)
    run_trials(study, 2)
    assert len(finished_trials(study)) == 3


HOLD = """
import sys, time
from pathlib import Path
from smart_tuner.storages.journal_file import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_killed_process_holds_no_lock(tmp_path: Path) -> None:
    journal = tmp_path / "journal.log"
    study_at(journal)
    command = [sys.executable, "-c", HOLD, str(journal)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        holder.kill()
        run_trials(study_at(journal), 1)
    assert [path.name for path in tmp_path.iterdir()] == ["journal.log"]


WORK = """
import sys
from pathlib import Path
from test_journal import run_trials, study_at
run_trials(study_at(Path(sys.argv[1])), 8)
"""


def test_two_processes_share_a_journal(tmp_path: Path) -> None:
    journal = tmp_path / "journal.log"
    study_at(journal)
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(__file__)}  # noqa: PTH120
    command = [sys.executable, "-c", WORK, str(journal)]
    workers = [subprocess.Popen(command, env=environment) for _ in range(2)]
    assert [worker.wait(timeout=60) for worker in workers] == [0, 0]
    trials = study_at(journal, create=False).trials
    assert [trial.number for trial in trials] == list(range(16))
    assert len({tuple(trial.params.items()) for trial in trials}) == 16


def test_a_network_file_system_is_named(tmp_path: Path) -> None:
    partitions = [Partition("/", "ext4"), Partition(str(tmp_path), "nfs4")]
    assert "nfs4" in network_note(tmp_path / "journal.log", partitions)
    assert network_note(tmp_path / "journal.log", partitions[:1]) == ""
    assert network_note(tmp_path / "journal.log", []) == ""


def test_only_the_new_trial_s_own_records_are_folded() -> None:
    created = {"op_code": 4, "study_id": 0}
    other = {"op_code": 8, "trial_id": 1, "user_attr": {"a": 1}}
    own = {"op_code": 9, "trial_id": 7, "system_attr": {"b": 2}}
    param = {"op_code": 5, "trial_id": 7, "param_name": "p", "param_value_internal": 1}
    folded = fold([created, other, own, {**param, "distribution": "{}"}])
    assert folded[1:] == [other]
    assert folded[0]["system_attrs"] == {"b": 2}
    assert folded[0]["params"] == {"p": 1}
    assert fold([created, own]) == [created, own]
    assert fold([]) == []


def test_waiting_for_a_busy_journal_gives_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = tmp_path / "journal.log"
    study = study_at(journal)
    monkeypatch.setattr("smart_tuner.storages.journal_file.LOCK_SECONDS", 0.05)
    command = [sys.executable, "-c", HOLD, str(journal)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        started = time.monotonic()
        with pytest.raises(EnvironmentNotFit, match="Another process"):
            ask_trial(study, CHOICES)
        assert time.monotonic() - started < 30
        holder.kill()
