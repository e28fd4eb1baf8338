"""A study that is run as a user runs it, to be harmed in every way."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import psutil
from optuna.trial import TrialState

from smart_tuner.errors import UserInputError
from smart_tuner.storages.journal import open_study
from smart_tuner.study.files.names import STUDY_NAME

if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Mapping
    from pathlib import Path

    import optuna

PATIENCE = 300.0
"""Seconds that a session may take to come to where a test waits for it."""

SET_STATE = 6
ENDED = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL)
"""Operation code and states of Optuna's journal."""


@dataclass
class Victim:
    """One study.

    Attributes:
        place: Where the command runs: all its processes have it as their folder, which is how
            they are found; nothing else runs there.
        temporary: Its folder for temporary files.
    """

    place: Path
    temporary: Path
    sessions: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def study(self) -> Path:
        """The study folder."""
        return self.place / "model.study"

    def start(
        self,
        *options: str,
        prepare: Callable[[], None] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Session:
        """Run ``smart-tuner tune`` in the background.

        Args:
            options: Flags besides those that every session has.
            prepare: Called in the new process before the command.
            environment: Variables besides those that every session has.
        """
        words = ("tune", "model.onnx", "--backend", "replay", "--metric", "linf")
        return self._start((*words, *options), prepare, environment or {})

    def start_worker(self) -> Session:
        """Run ``smart-tuner worker`` in the background."""
        return self._start(("worker", str(self.study)), None, {})

    def _start(
        self,
        words: tuple[str, ...],
        prepare: Callable[[], None] | None,
        environment: Mapping[str, str],
    ) -> Session:
        self.temporary.mkdir(exist_ok=True)
        process = subprocess.Popen(
            [sys.executable, "-m", "smart_tuner", *words],
            cwd=self.place,
            env={
                **os.environ,
                "TMPDIR": str(self.temporary),
                "XDG_RUNTIME_DIR": str(self.temporary.parent),
                "COLUMNS": "500",
                **environment,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=prepare,  # noqa: PLW1509, no thread of ours is running
        )
        self.sessions.append(process)
        return Session(process)

    def processes(self) -> list[int]:
        """Living processes of any session, children and theirs too."""
        return [process.pid for process in psutil.process_iter() if self._is_ours(process)]

    def _is_ours(self, process: psutil.Process) -> bool:
        try:
            is_ours = process.cwd() == str(self.place)
            return is_ours and process.status() != psutil.STATUS_ZOMBIE
        except psutil.Error:
            return False

    def wait_until_alone(self) -> None:
        """Wait until the kernel has taken away what a killed session left."""
        deadline = time.monotonic() + 10
        while self.processes() and time.monotonic() < deadline:
            time.sleep(0.02)
        assert self.processes() == [], "orphans are left"

    def end(self) -> None:
        """Kill what a failed test left."""
        for process in self.sessions:
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()

    def ends(self) -> list[int]:
        """Trial of each record that ends one, in the order of the journal; FAIL ends one too."""
        journal = self.study / "journal.log"
        lines = journal.read_bytes().splitlines(keepends=True) if journal.exists() else []
        records = [json.loads(line) for line in lines if line.endswith(b"\n")]
        return [
            record["trial_id"]
            for record in records
            if record["op_code"] == SET_STATE and record["state"] in ENDED
        ]

    def optuna_study(self) -> optuna.Study | None:
        """The study as it stands, read from a copy: a test must not mend what it looks at."""
        copy = self.temporary.parent / "copy.log"
        if not (self.study / "journal.log").exists():
            return None
        shutil.copy2(self.study / "journal.log", copy)
        try:
            return open_study(copy, STUDY_NAME, None, create=False)
        except UserInputError:
            return None  # killed before the first record

    def leftovers(self) -> list[str]:
        """Files that should not outlive a session."""
        unfinished = [*self.study.rglob("*.partial"), *self.study.rglob("*.tmp")]
        engines = self.study / "engines"
        built = [path for path in engines.iterdir() if path.name != "baseline"]
        kept = [*self.study.glob("trials/*/engine"), *self.temporary.iterdir()]
        return [str(path) for path in (*unfinished, *built, *kept)]


@dataclass
class Session:
    """One run of the command.

    Attributes:
        process: The command.
        lines: What it said so far.
    """

    process: subprocess.Popen[str]
    lines: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Everything that it said."""
        return "".join(self.lines)

    def wait_for(self, pattern: str) -> None:
        """Wait for a line that matches."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)
            if re.search(pattern, line):
                return
        msg = f"it ended without saying {pattern!r}: {self.text}"
        raise AssertionError(msg)

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the command alone."""
        self.process.send_signal(number)

    def finish(self) -> int:
        """Wait for its end and return the exit code."""
        try:
            rest, _ = self.process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            rest, _ = self.process.communicate()
            msg = f"it did not end within {PATIENCE:.0f} s: {self.text}{rest}"
            raise AssertionError(msg) from None
        self.lines.append(rest)
        return self.process.returncode
