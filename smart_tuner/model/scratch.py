"""Temporary folders that are gone in the end, even after a kill: the next start removes them."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PREFIX = "smart-tuner-"

_YOUNG_SECONDS = 60.0
"""A folder may be younger than its lock."""


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Make a temporary folder; remove it afterwards, and those that killed processes left.

    Its owner holds a lock on it that the kernel releases, so that a folder nobody holds is known
    to be left over, whatever namespace its process ran in.
    """
    remove_abandoned()
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(held)


def remove_abandoned(young_seconds: float = _YOUNG_SECONDS) -> None:
    """Delete folders of ours that no process holds any more.

    Args:
        young_seconds: Folders that changed within this time are left alone.
    """
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):
            _remove_if_abandoned(folder, young_seconds)


def _remove_if_abandoned(folder: Path, young_seconds: float) -> None:
    """Delete a folder of this user that is old enough and held by nobody.

    Raises:
        OSError: It is held, no folder, or of somebody else.
    """
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        status = os.fstat(held)
        is_young = status.st_mtime > time.time() - young_seconds  # noqa: TID251  a file's clock
        if status.st_uid != os.getuid() or is_young:
            return
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(held)
