"""A real PostgreSQL server for tests, under a temporary folder and as an unprivileged user."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

MISSING = "no PostgreSQL server here: apt-get install postgresql, pip install psycopg"
PATIENCE = 60.0


def binaries() -> Path | None:
    """Folder of the newest server that is installed, Debian's or one on the path."""
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    found = debian[-1] if debian else shutil.which("initdb")
    return Path(found).resolve().parent if found else None


def _as_nobody() -> dict[str, Any]:
    """The server refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


@dataclass
class Server:
    """One server.

    Attributes:
        place: Its folder, which holds its socket too.
        programs: Folder of its binaries.
    """

    place: Path
    programs: Path
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it answers."""
        sockets = ["-k", str(self.place), "-c", "listen_addresses="]
        quick = ["-c", "fsync=off", "-c", "shared_buffers=32MB", "-c", "max_connections=60"]
        with (self.place / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [self.programs / "postgres", "-D", self.place / "data", *sockets, *quick],
                **_as_nobody(),
                cwd=self.place,
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + PATIENCE
        while not self._answers():
            assert time.monotonic() < deadline, (self.place / "log").read_text()
            time.sleep(0.05)

    def kill(self) -> None:
        """End it as a crash would."""
        if self.process is None:
            return
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process = None

    def stop(self) -> None:
        """End it without ceremony."""
        if self.process is not None:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait(PATIENCE)

    @property
    def url(self) -> str:
        """Address of the one database; tests share it, since making one takes a while."""
        return f"postgresql:///study?host={self.place}&user=tuner"

    def empty(self) -> None:
        """Take everything out of the database."""
        others = "FROM pg_stat_activity WHERE datname = 'study' AND pid <> pg_backend_pid()"
        for statement in (
            f"SELECT pg_terminate_backend(pid) {others}",
            "DROP SCHEMA public CASCADE; CREATE SCHEMA public",
        ):
            self.run("psql", "-qc", statement, "study")

    def _answers(self) -> bool:
        return self.run("pg_isready", check=False).returncode == 0

    def run(
        self, program: str, *words: str, check: bool = True
    ) -> subprocess.CompletedProcess[bytes]:
        """Run one of the server's programs on it."""
        address = ("-h", str(self.place), "-U", "tuner")
        return subprocess.run(
            [self.programs / program, *address, *words], check=check, capture_output=True
        )


@contextmanager
def running_server() -> Iterator[Server]:
    """A server that is gone afterwards; the test is skipped where none is installed."""
    programs = binaries()
    if programs is None:
        pytest.skip(MISSING)
    pytest.importorskip("psycopg", reason=MISSING)
    place = Path(tempfile.mkdtemp(prefix="smart-tuner-pg-"))
    server = Server(place, programs)
    try:
        if user := _as_nobody().get("user"):
            os.chown(place, user, -1)
        words = [
            "-D",
            str(place / "data"),
            "-A",
            "trust",
            "-U",
            "tuner",
            "-E",
            "UTF8",
            "--no-sync",
        ]
        subprocess.run(
            [str(programs / "initdb"), *words, "--no-locale"],
            **_as_nobody(),
            cwd=place,
            check=True,
            capture_output=True,
        )
        server.start()
        server.run("createdb", "study")
        yield server
    finally:
        server.stop()
        shutil.rmtree(place, ignore_errors=True)
