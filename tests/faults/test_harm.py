"""Signals, torn files, full disks: one clear line, and the same command goes on."""

import os
import resource
import signal
import time

import pytest
from filelock import FileLock

from tests.faults.victim import Session, Victim

SHORT = ("--seed", "5", "--budget", "40s")
NO_FINALISTS = (*SHORT, "--min-gain", "9")
"""Nothing gains so much, so the search is all that takes time."""


def only_line(session: Session) -> str:
    """What it complained about, which is one line."""
    complaints = [line for line in session.lines if line.startswith("smart-tuner: ")]
    text = "".join(complaints[-1:])
    assert "Traceback" not in session.text, session.text
    assert text, session.text
    return text


def all_lines(session: Session) -> None:
    session.lines = session.text.splitlines(keepends=True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["INT", "TERM"])
def test_a_signal_in_each_phase_of_the_start_leaves_nothing(
    victim: Victim, number: signal.Signals
) -> None:
    before = sorted(path.name for path in victim.place.iterdir())
    for phase in ("prepare", "baseline"):
        session = victim.start(*SHORT, "--trials", "3")
        session.wait_for(rf"^\[{phase}\]")
        session.send(number)
        assert session.finish() == 130, session.text
        all_lines(session)
        assert "tune model.onnx" in only_line(session), "it says how to start again"
        victim.wait_until_alone()
        assert sorted(path.name for path in victim.place.iterdir()) == before


@pytest.mark.parametrize(
    ("number", "moments"),
    [
        (signal.SIGINT, (r"^trial   1 ", r"^\[reset\]")),
        (signal.SIGTERM, (r"^\[finalists\]", r"^\[report\]")),
    ],
    ids=["INT", "TERM"],
)
def test_a_signal_in_each_later_phase_keeps_the_study(
    victim: Victim, number: signal.Signals, moments: tuple[str, str]
) -> None:
    finished = 0
    for moment in moments:
        session = victim.start(*SHORT, "--trials", "4")
        session.wait_for(moment)
        session.send(number)
        assert session.finish() == 130, session.text
        all_lines(session)
        assert "tune model.onnx" in only_line(session), "it says how to continue"
        victim.wait_until_alone()
        assert len(victim.ends()) >= finished
        finished = len(victim.ends())
        assert not (victim.study / "result.json").exists()
    session = victim.start(*NO_FINALISTS, "--trials", "4")
    assert session.finish() == 0, session.text
    assert victim.leftovers() == []


def test_a_kill_among_finalists_is_concluded_by_the_next_run(victim: Victim) -> None:
    session = victim.start(*SHORT, "--trials", "4")
    session.wait_for(r"^\[finalists\]")
    time.sleep(0.5)
    session.send(signal.SIGKILL)
    session.finish()
    victim.wait_until_alone()
    finished = victim.ends()
    session = victim.start(*SHORT, "--trials", "4")
    assert session.finish() == 0, session.text
    assert victim.ends() == finished, "no trial was needed"
    assert (victim.study / "result.json").exists()
    assert victim.leftovers() == []


def begin(victim: Victim) -> None:
    """A study of one trial, the default."""
    session = victim.start(*NO_FINALISTS, "--trials", "1")
    assert session.finish() == 0, session.text


def test_a_torn_last_line_is_cut_and_told(victim: Victim) -> None:
    begin(victim)
    journal = victim.study / "journal.log"
    whole = journal.read_bytes()
    journal.write_bytes(whole + b'{"op_code":4,"worker_id":"x","study_id":0,"datet')
    session = victim.start(*NO_FINALISTS, "--trials", "2")
    assert session.finish() == 0, session.text
    assert "note: journal.log: cut 48 bytes of a record that was never finished" in session.text
    assert journal.read_bytes().startswith(whole)
    assert len(victim.ends()) == 2


def test_a_result_that_was_not_told_is_told_once(victim: Victim) -> None:
    """The process died between writing the result and telling the journal."""
    session = victim.start(*NO_FINALISTS, "--trials", "3")
    session.wait_for(r"^trial   1 ")
    session.send(signal.SIGKILL)
    session.finish()
    victim.wait_until_alone()
    untell(victim, trial=1)
    results = victim.study / "trials" / "1" / "result.json"
    before = results.read_bytes()
    for heard in (True, False):
        session = victim.start(*NO_FINALISTS, "--trials", "2")
        assert session.finish() == 0, session.text
        assert ("note: trial 1 had finished before the interruption: kept" in session.text) is (
            heard
        )
        assert len(victim.ends()) == 2
    assert results.read_bytes() == before


def untell(victim: Victim, *, trial: int) -> None:
    """Cut the journal behind the beginning of a trial."""
    journal = victim.study / "journal.log"
    lines = journal.read_bytes().splitlines(keepends=True)
    begun = [n for n, line in enumerate(lines) if b'"op_code":4' in line]
    journal.write_bytes(b"".join(lines[: begun[trial] + 1]))


def limited(size: int) -> None:
    """Make every file of this process and its children end at a size, as a full disk would."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def test_a_disk_that_is_full_from_the_start_leaves_nothing(victim: Victim) -> None:
    before = sorted(path.name for path in victim.place.iterdir())
    session = victim.start(*NO_FINALISTS, "--trials", "2", prepare=lambda: limited(200))
    assert session.finish() == 3, session.text
    all_lines(session)
    assert "cannot be written" in only_line(session)
    assert sorted(path.name for path in victim.place.iterdir()) == before


def test_a_disk_that_fills_up_stops_the_study_and_the_next_start_works(victim: Victim) -> None:
    begin(victim)
    size = (victim.study / "journal.log").stat().st_size
    session = victim.start(*NO_FINALISTS, "--trials", "9", prepare=lambda: limited(size + 6000))
    assert session.finish() == 3, session.text
    all_lines(session)
    line = only_line(session)
    assert str(victim.study) in line
    assert "nothing finished is lost" in line
    victim.wait_until_alone()
    finished = victim.ends()
    session = victim.start(*NO_FINALISTS, "--trials", str(len(finished) + 2))
    assert session.finish() == 0, session.text
    assert victim.ends()[: len(finished)] == finished
    assert len(victim.ends()) == len(set(victim.ends()))
    assert victim.leftovers() == []


def test_two_sessions_in_one_folder(victim: Victim) -> None:
    begin(victim)
    with FileLock(victim.study / ".lock"):
        session = victim.start(*NO_FINALISTS, "--trials", "2")
        assert session.finish() == 3, session.text
    all_lines(session)
    assert f"Another smart-tuner works in {victim.study}" in only_line(session)
    assert len(victim.ends()) == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_study_that_may_not_be_written_any_more(victim: Victim) -> None:
    begin(victim)
    victim.study.chmod(0o500)
    session = victim.start(*NO_FINALISTS, "--trials", "2")
    code = session.finish()
    victim.study.chmod(0o700)
    assert code == 3, session.text


def test_a_session_whose_reader_is_gone_leaves_no_process(victim: Victim) -> None:
    session = victim.start(*NO_FINALISTS, "--trials", "30")
    session.wait_for(r"^trial   1 ")
    assert session.process.stdout is not None
    session.process.stdout.close()
    session.process.wait(60)
    victim.wait_until_alone()
