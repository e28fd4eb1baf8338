"""Files that are whole or absent, and their digests."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO

from smart_tuner.errors import EnvironmentNotFit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CHUNK_BYTES = 1 << 20


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Write a file that appears at once, complete, or not at all.

    The bytes go to ``NAME.partial`` beside it first. That name is always the same one, so what a
    killed process left behind is overwritten by the next try, never piled up.

    Raises:
        EnvironmentNotFit: The folder is missing, full or not writable.
    """
    partial = path.with_name(path.name + ".partial")
    try:
        try:
            with partial.open("wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        msg = f"{path}: cannot be written: {error.strerror or error}; free or allow that folder."
        raise EnvironmentNotFit(msg) from error


def write_json(path: Path, data: object) -> None:
    """Write a JSON file so that a reader, or a crash, sees the old file or the new one.

    Args:
        path: File to write; its folder exists.
        data: Plain JSON types.

    Raises:
        ValueError: The data holds NaN or an infinity.
        EnvironmentNotFit: The folder cannot be written or is full; nothing is left behind then.
    """
    text = json.dumps(data, allow_nan=False, indent=1)
    with whole_file(path) as file:
        file.write(text.encode("ascii") + b"\n")


def add_file(digest: hashlib._Hash, path: Path) -> None:
    """Feed a file of any size to a digest, in small pieces."""
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)


def file_digest(path: Path) -> str:
    """SHA-256 of a file of any size, as ``sha256sum`` prints it."""
    digest = hashlib.sha256()
    add_file(digest, path)
    return digest.hexdigest()
