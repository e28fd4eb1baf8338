"""A compiler whose knobs make its process misbehave in every way; copied beside the model."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from smart_tuner.backends.replay import ReplayBackend

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from smart_tuner.engine.build import BuildRequest, Engine

SLEEPER = [sys.executable, "-c", "import time; time.sleep(600)"]
FLOOD_BYTES = 40 << 20


def be_deaf() -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    time.sleep(600)


def fork() -> None:
    subprocess.Popen(SLEEPER)
    subprocess.Popen(SLEEPER, start_new_session=True)


def flood() -> None:
    line = b"x" * 1023 + b"\n"
    for _ in range(FLOOD_BYTES // len(line)):
        os.write(1, line)


def write_garbage() -> None:
    for descriptor in range(3, 30):
        with contextlib.suppress(OSError):
            os.write(descriptor, b'{"garbage": \xff NaN\n')
    time.sleep(600)


def run_out_of_memory() -> None:
    msg = "CUDA error 2: out of memory"
    raise MemoryError(msg)


MISDEEDS: dict[str, Callable[[], object]] = {
    "deaf": be_deaf,
    "forks": fork,
    "flood": flood,
    "garbage": write_garbage,
    "memory": run_out_of_memory,
    "sleeps": lambda: time.sleep(600),
}


class WildBackend(ReplayBackend):
    """Does what its route says before it builds."""

    def build(self, request: BuildRequest, workdir: Path) -> Engine:
        for name in request.route.values:
            if name in MISDEEDS:
                MISDEEDS[name]()
        return super().build(request, workdir)
