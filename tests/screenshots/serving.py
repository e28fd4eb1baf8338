"""The dashboard as people start it."""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextlib.contextmanager
def dashboard_process(place: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The dashboard over a folder: its address and its process; Ctrl-C ends it."""
    words = [sys.executable, "-m", "smart_tuner", "dashboard", str(place), "--port", "0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())
            assert found is not None
            yield found[0], process
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(30)


@contextlib.contextmanager
def served(place: Path) -> Iterator[str]:
    """The dashboard over a folder: its address."""
    with dashboard_process(place) as (address, _):
        yield address
