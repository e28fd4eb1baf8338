"""Who works in a study: signs of life of workers, and when they count as gone.

Each worker keeps one attribute of the study, renewed by a thread for as long as its process lives.
No clock is compared with another machine's: an observer takes a worker for gone when its sign of
life has not changed for a while by the observer's own monotonic clock, which nobody sets back.
On the worker's own machine the kernel says at once whether its process is still there.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optuna.exceptions import StorageInternalError

from smart_tuner.errors import SmartTunerError
from smart_tuner.storages.gathering import storage_of
from smart_tuner.storages.journal import JournalStudyStorage
from smart_tuner.storages.journal_file import JournalFile

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import optuna
    from typing_extensions import Self

    Write = Callable[[str, Mapping[str, Any]], None]

PREFIX = "worker:"
"""Study attributes that begin so are signs of life, one a worker."""

BEAT_SECONDS = 10.0
LEASE_SECONDS = 60.0
"""A worker that gave no sign for so long is gone; a network that is away for less is no loss."""

SET_STUDY_USER_ATTR = 2
"""Operation code of the journal's format."""

_UNWRITTEN = (SmartTunerError, StorageInternalError, OSError)


def new_worker_name() -> str:
    """A name that no other worker has, readable for people."""
    host = socket.gethostname().split(".")[0] or "worker"
    return f"{host}-{os.getpid()}-{secrets.token_hex(3)}"


class Lease:
    """Signs of life of this process, for as long as the context lasts."""

    def __init__(self, study: optuna.Study, name: str) -> None:
        """Prepare; nothing is written yet.

        Args:
            study: The study.
            name: The worker's name.
        """
        self._name = name
        self._write = attribute_writer(study)
        self._sign = {"beat": 0, **_this_process()}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._live, name="lease", daemon=True)

    def __enter__(self) -> Self:
        self._write(PREFIX + self._name, self._sign)
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._over.set()
        self._thread.join()
        self._try_to_write({**self._sign, "left": True})

    def _live(self) -> None:
        while not self._over.wait(BEAT_SECONDS):
            self._sign["beat"] += 1
            self._try_to_write(self._sign)

    def _try_to_write(self, sign: Mapping[str, Any]) -> None:
        # A disk that is full or a database that is away is told by those who write results.
        with contextlib.suppress(*_UNWRITTEN):
            self._write(PREFIX + self._name, sign)


@dataclass(slots=True)
class Observer:
    """Tells which workers are gone, by what changed since this process first looked.

    Attributes:
        clock: Seconds that never go back.
    """

    clock: Callable[[], float] = time.monotonic
    _seen: dict[str, tuple[Any, float]] = field(default_factory=dict)

    def is_gone(self, name: str, attributes: Mapping[str, Any]) -> bool:
        """Whether a worker is gone.

        Args:
            name: The worker's.
            attributes: The study's user attributes, read just now.
        """
        sign = attributes.get(PREFIX + name)
        if not isinstance(sign, dict) or sign.get("left"):
            return True
        if _has_ended(sign):
            return True
        beat, since = self._seen.get(name, (None, 0.0))
        if beat != sign.get("beat"):
            self._seen[name] = (sign.get("beat"), self.clock())
            return False
        return self.clock() - since > LEASE_SECONDS


def attribute_writer(study: optuna.Study) -> Write:
    """What sets attributes of a study from a thread of its own.

    A storage that gathers is not shared between threads; this one has a way of its own.
    """
    storage = storage_of(study)
    study_id = storage.get_study_id_from_name(study.study_name)
    if isinstance(storage, JournalStudyStorage):
        journal = JournalFile(storage.journal.path)
        record = {"op_code": SET_STUDY_USER_ATTR, "worker_id": "lease", "study_id": study_id}
        return lambda key, value: journal.append_logs([{**record, "user_attr": {key: value}}])
    return lambda key, value: storage.set_study_user_attr(study_id, key, value)


def _this_process() -> dict[str, Any]:
    pid = os.getpid()
    return {
        "machine": _machine(),
        "pid": pid,
        "start": _start_of(pid),
        "host": socket.gethostname(),
    }


def _machine() -> str:
    """Where process ids mean the same: this boot of this machine, in this namespace."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def _start_of(pid: int) -> str:
    """When a process began, in ticks since the machine did; empty if it is not there.

    Unlike a time of day this does not change when somebody sets the clock.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    state, *rest = fields.rpartition(")")[2].split()
    return "" if state in "ZX" else rest[18]


def _has_ended(sign: Mapping[str, Any]) -> bool:
    """Whether the process behind a sign of life ended, as far as this machine can tell."""
    machine = _machine()
    if not machine or sign.get("machine") != machine:
        return False
    return _start_of(int(sign.get("pid", 0))) != sign.get("start")
