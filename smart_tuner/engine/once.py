"""A child process that answers one question and ends."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_PARENT_DEATH_SIGNAL = 1


def run_once(module: str, folder: Path, deadline_seconds: float) -> str:
    """Run ``python -m MODULE FOLDER`` to its end.

    Args:
        module: What runs; it finds its question in the folder, and leaves its answer there.
        folder: Its only argument.
        deadline_seconds: After so many it is killed.

    Returns:
        How it ended, and the last line that it wrote to its error stream.
    """
    command = [sys.executable, "-m", module, str(folder)]
    try:
        done = subprocess.run(  # noqa: S603, our own module, no shell
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=deadline_seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {deadline_seconds:.0f} s"
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    return f"exit code {done.returncode}{': ' + lines[-1] if lines else ''}"


def end_with_parent(parent: int) -> None:
    """Let the kernel kill this process when the one that started it ends (Linux's prctl).

    Args:
        parent: Process that waits for the answer; if it is gone already, so are we.
    """
    ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
