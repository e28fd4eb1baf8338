"""Reading and writing small files: what every layer needs of the file system."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING, Any

from smart_tuner.errors import UserInputError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from pathlib import Path

TEMPORARY = ".part"
"""Ending of files in the making; one that a killed process left behind may be deleted."""


def read_toml(path: Path, what: str) -> dict[str, Any]:
    """Read a TOML file.

    Args:
        path: The file.
        what: What the user calls it, for the message: ``base``, ``workload``.

    Raises:
        UserInputError: It cannot be read or is not TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        msg = f"Cannot read the {what} {path}: {error.strerror}."
        raise UserInputError(msg) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        msg = f"The {what} {path} is not valid TOML: {error}."
        raise UserInputError(msg) from None


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that a reader, or a crash, sees the old content or the new, never a part.

    Raises:
        OSError: The disk is full or the folder cannot be written to; the old content stays.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}{TEMPORARY}")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
