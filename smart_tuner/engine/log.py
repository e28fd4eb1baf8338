"""The log of a child process: its end, and how it is kept from growing without bound."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

MAX_LOG_BYTES = 16 << 20

_TAIL_BYTES = 64 << 10
_CRASH = "Fatal Python error"
_LAST_WORDS_LINES, _LAST_WORDS_LENGTH = 3, 300


def log_tail(path: Path, lines: int = 8) -> str:
    """Return the last lines of a log that are not blank; empty if there is no log."""
    kept = [line.rstrip() for line in _tail(path).splitlines() if line.strip()]
    return "\n".join(kept[-lines:])


def last_words(path: Path) -> str:
    """Return what a process said last, on one line; empty if it said nothing.

    Python's stack dump of a crash says less than the lines before it, so it is left out.
    """
    kept = log_tail(path, lines=1000).splitlines()
    crash = next((index for index, line in enumerate(kept) if line.startswith(_CRASH)), None)
    if crash is not None:
        kept = kept[:crash]
    text = " | ".join(line.strip() for line in kept[-_LAST_WORDS_LINES:])
    printable = "".join(sign if sign.isprintable() else " " for sign in text)
    return printable[-_LAST_WORDS_LENGTH:]


def cap_log(path: Path) -> None:
    """Cut a log that has passed ``MAX_LOG_BYTES`` down to its end; its writer must append.

    The writer goes on meanwhile: the end is copied to the beginning first, what is written during
    that as well, and only then is the rest cut off. So the order stays, and nothing new is lost
    but what is written in that very instant.
    """
    with suppress(OSError):  # there may be none
        if path.stat().st_size > MAX_LOG_BYTES:
            with path.open("r+b", buffering=0) as log:
                _cut(log.fileno())


def _cut(log: int) -> None:
    size = os.fstat(log).st_size
    begin = f"[smart_tuner cut {size} bytes off this log; it goes on with its end]\n".encode()
    position = os.pwrite(log, begin, 0)
    read = size - _TAIL_BYTES
    while chunk := os.pread(log, _TAIL_BYTES, read):
        if position + len(chunk) > min(read, MAX_LOG_BYTES // 2):
            break  # it writes faster than it is copied
        read += len(chunk)
        position += os.pwrite(log, chunk, position)
    os.ftruncate(log, position)


def _tail(path: Path) -> str:
    try:
        with path.open("rb") as log:
            log.seek(max(0, path.stat().st_size - _TAIL_BYTES))
            return log.read(_TAIL_BYTES).decode("utf-8", errors="replace")
    except OSError:
        return ""
