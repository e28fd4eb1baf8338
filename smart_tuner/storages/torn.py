"""Mends the end of a journal that was torn by a kill, a power cut or a full disk."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from smart_tuner.errors import UserInputError

if TYPE_CHECKING:
    from pathlib import Path

RECORD_START = b'{"op_code":'


def mend_tail(journal: Path, descriptor: int) -> str:
    """Make the journal end with a whole, readable record; call it with the journal locked.

    A last line that is whole but for its line end gets one. Anything else behind the last
    readable record is cut: such bytes belong to an append that never returned, so nobody was
    told that they were kept. They are not set aside.

    Args:
        journal: The file, for messages.
        descriptor: The same file, open for reading and writing.

    Returns:
        What was done, one line; empty if the journal was sound.

    Raises:
        UserInputError: The file is not a journal at all; it is left as it is.
    """
    size = os.fstat(descriptor).st_size
    if size == 0:
        return ""
    content = os.pread(descriptor, size, 0)
    end = content.rfind(b"\n") + 1
    if end < size and is_record(content[end:]):
        os.pwrite(descriptor, b"\n", size)
        os.fsync(descriptor)
        return f"{journal.name}: the last record lacked its line end; it was kept."
    while end and not is_record(line := _last_line(content, end)):
        end -= len(line)
    if end == size:
        return ""
    if end == 0 and not _is_torn_start(content):
        msg = f"{journal} is not an Optuna journal; move it away or choose another study folder."
        raise UserInputError(msg)
    os.ftruncate(descriptor, end)
    os.fsync(descriptor)
    return (
        f"{journal.name}: cut {size - end} bytes of a record that was never finished "
        "(a kill, a power cut or a full disk); every finished trial is there."
    )


def damaged_line(journal: Path) -> int:
    """Number of the first line, from 1, that is not a record; 0 if all are."""
    with journal.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not is_record(line):
                return number
    return 0


def is_record(line: bytes) -> bool:
    """Whether a line is one whole operation of the journal."""
    try:
        record = json.loads(line)
    except ValueError:
        return False
    return isinstance(record, dict) and "op_code" in record


def _last_line(content: bytes, end: int) -> bytes:
    return content[content.rfind(b"\n", 0, end - 1) + 1 : end]


def _is_torn_start(content: bytes) -> bool:
    """Whether a file without a single record can be the torn first appends of a journal."""
    text = content.rstrip(b"\0\n")
    head, *pieces = text.split(b"{")
    return not head.strip(b"\0\n") and all(_begins_record(b"{" + piece) for piece in pieces)


def _begins_record(piece: bytes) -> bool:
    return piece.startswith(RECORD_START) or RECORD_START.startswith(piece.rstrip(b"\0\n"))
