"""A process group as a whole: its members, its memory, its end."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_LOOK_AGAIN_SECONDS = 0.005


def living_members(group: int) -> Iterator[psutil.Process]:
    """Yield the processes of a group that have not ended; a zombie has."""
    for pid in psutil.pids():
        with suppress(OSError, psutil.Error):
            if os.getpgid(pid) == group:
                process = psutil.Process(pid)
                if process.status() != psutil.STATUS_ZOMBIE:
                    yield process


def resident_bytes(group: int) -> int:
    """Return the resident memory of all processes of a group; shared pages count each time."""
    total = 0
    for process in living_members(group):
        total += resident_bytes_of(process.pid)
    return total


def resident_bytes_of(pid: int) -> int:
    """Return the resident memory of one process; none when it has ended."""
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return 0


def descendants(pid: int) -> tuple[psutil.Process, ...]:
    """Return all children of a process and theirs, those in other groups too."""
    try:
        return tuple(psutil.Process(pid).children(recursive=True))
    except psutil.Error:
        return ()


def kill_group(group: int, strays: Iterable[psutil.Process] = ()) -> None:
    """Kill every process of a group.

    Args:
        group: Id of the process group, whose leader may have ended already.
        strays: Further processes to kill, such as descendants that left the group.
    """
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
    for process in strays:
        with suppress(psutil.Error):
            process.kill()


def wait_for_group(group: int, timeout_seconds: float) -> None:
    """Wait until no process of a killed group is alive, or the time is over.

    Call it only after the leader was waited for: orphans that landed on us are reaped here.
    """
    deadline = time.perf_counter() + timeout_seconds
    while _is_alive(group) and time.perf_counter() < deadline:
        time.sleep(_LOOK_AGAIN_SECONDS)


def _is_alive(group: int) -> bool:
    # Orphans land on us when we are process 1 of a container, and nobody else reaps them there.
    with suppress(ChildProcessError):
        while os.waitpid(-group, os.WNOHANG)[0]:
            pass
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return any(True for _ in living_members(group))
