"""Ctrl-C: one line with the very command that continues, which a shell takes as it stands."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from smart_tuner.cli.invocation import current, invoked, program_words
from smart_tuner.study.files.folder import StudyFolder
from tests.unit.cli.calling import REPLAY, call, command, write_model

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE = 'it\'s "$HOME" [a|b]; `é` 模型  two'
STARTED = "trial   0"


def stopped(words: list[str], number: signal.Signals, mark: str, folder: Path) -> tuple[int, str]:
    """Start a command, send a signal once a line with the mark is out; exit code and stderr."""
    process = subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    for line in process.stdout:
        if mark in line:
            break
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    return process.returncode, err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_printed_command_is_the_one_that_was_called(
    number: signal.Signals, tmp_path: Path
) -> None:
    place = tmp_path / HOSTILE
    place.mkdir()
    (place / "a").touch()  # what an unquoted [a|b] would match
    model = write_model(place, name="m")
    study = f"{HOSTILE}/s"
    words = command(
        "tune", model, *REPLAY, "--study", study, "--budget", "5m", "--values=speed=[fast]"
    )
    code, err = stopped(words, number, STARTED, tmp_path)
    assert code == 130
    line = err.removesuffix("\n")
    assert "\n" not in line
    said, _, printed = line.partition("to continue: ")
    assert said == "smart-tuner: stopped, the study is kept; "
    assert shlex.split(printed) == words
    echoed = subprocess.run(
        ["bash", "-c", f"printf '%s\\n' {printed}"],
        capture_output=True,
        text=True,
        check=True,
        cwd=place,
    )
    assert echoed.stdout.splitlines() == words
    status = call("status", tmp_path / study)
    again = re.search(r"to continue: (.*)", status.out)
    assert again is not None
    assert shlex.split(again[1])[:5] == [
        "smart-tuner",
        "tune",
        str(model),
        "--study",
        str(tmp_path / study),
    ]


def test_a_stop_before_the_study_leaves_nothing(tmp_path: Path) -> None:
    model = write_model(tmp_path)
    before = sorted(tmp_path.iterdir())
    words = command("tune", model, *REPLAY, "--budget", "5m")
    code, err = stopped(words, signal.SIGINT, "[prepare]", tmp_path)
    assert code == 130
    assert err.startswith("smart-tuner: stopped; to start again: ")
    assert shlex.split(err.partition("again: ")[2]) == words
    assert sorted(tmp_path.iterdir()) == before


def test_a_stopped_study_goes_on(tmp_path: Path) -> None:
    model = write_model(tmp_path)
    words = command("tune", model, *REPLAY, "--study", "s", "--budget", "2s", "--trials", "1")
    code, err = stopped(words, signal.SIGINT, "[search]", tmp_path)
    if code == 130:  # else it was faster than the signal
        again = shlex.split(err.partition("to continue: ")[2])
        ended = subprocess.run(again, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended
    assert StudyFolder(tmp_path / "s").result_file.is_file()


def test_words_are_kept_for_the_call_only() -> None:
    with invoked(["smart-tuner"], ["tune", "--debug", "m", "--", "--debug"]) as rest:
        assert rest == ["tune", "m", "--", "--debug"]
        assert current().words == ("smart-tuner", "tune", "--debug", "m", "--", "--debug")
        assert current().debug
    with invoked(["smart-tuner"], ["tune", "--", "--debug"]):
        assert not current().debug
    assert current().words == ("smart-tuner",)


def test_the_program_is_named_as_it_was_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    script = tmp_path / "smart-tuner"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    monkeypatch.setattr(sys, "argv", [str(script)])
    assert program_words() == ["smart-tuner"]
    monkeypatch.setattr(sys, "argv", [".venv/bin/smart-tuner"])
    assert program_words() == [".venv/bin/smart-tuner"]
    monkeypatch.setattr(sys, "argv", ["/somewhere/smart_tuner/__main__.py"])
    assert program_words() == [sys.executable, "-m", "smart_tuner"]
    monkeypatch.setattr(sys, "argv", ["/somewhere/pytest"])
    assert program_words() == ["smart-tuner"]


def test_handlers_of_the_caller_come_back(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGTERM)
    call("status", tmp_path)
    assert signal.getsignal(signal.SIGTERM) is before


def test_another_thread_may_call(tmp_path: Path) -> None:
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(call("status", tmp_path).code))
    thread.start()
    thread.join()
    assert codes == [2]


def test_a_reader_that_goes_away_is_no_error() -> None:
    words = shlex.join(command("routes", "--expression", "-execution_mode=parallel", "--json"))
    ended = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {words} | true; exit ${{PIPESTATUS[0]}}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in ended.stderr
    assert "smart-tuner: " not in ended.stderr
