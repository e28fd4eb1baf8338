"""Answers of the runtime that cost seconds to find, kept in the user's cache folder.

They are facts of one binary, and maybe of one model and machine: a stamp says of which.
"""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

from smart_tuner.backends.onnxruntime.runtime import binary_path, runtime_version

_SCHEMA = 2


def runtime_stamp() -> str:
    """What tells one installed binary from another.

    Raises:
        EnvironmentNotFit: The runtime is missing.
    """
    binary = binary_path()
    status = binary.stat()
    return f"{runtime_version()} {status.st_size} {status.st_mtime_ns} {binary}"


def read_kept(name: str, stamp: str) -> dict[str, Any] | None:
    """What ``keep`` wrote under this name and stamp; a damaged file counts as none."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        stored = json.loads(_path(name).read_text(encoding="utf-8"))
        if stored["schema"] == _SCHEMA and stored["stamp"] == stamp:
            return dict(stored["answer"])
    return None


def keep(name: str, stamp: str, answer: dict[str, Any]) -> None:
    """Keep an answer; without a writable cache folder it is found anew each time."""
    path = _path(name)
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump({"schema": _SCHEMA, "stamp": stamp, "answer": answer}, file)
            Path(temporary).replace(path)
        finally:
            Path(temporary).unlink(missing_ok=True)


def _path(name: str) -> Path:
    return user_cache_path("smart_tuner") / f"{name}.json"
