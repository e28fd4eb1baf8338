"""One measurement at a time on a device, over all studies of a user."""

from __future__ import annotations

import hashlib
import os
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs
from filelock import FileLock, Timeout

from smart_tuner.errors import EnvironmentNotFit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_PATIENCE_SECONDS = 2.0


@contextmanager
def device_lock(
    device: str,
    *,
    label: str = "",
    on_wait: Callable[[str], None] | None = None,
    patience_seconds: float = _PATIENCE_SECONDS,
) -> Iterator[None]:
    """Hold the exclusive lock of one device; other holders are waited for.

    The kernel releases the lock when its holder ends, however it ends: a lock file that was left
    behind never blocks.

    Args:
        device: Name of the device, any text.
        label: What people call it, if that is another name.
        on_wait: Called once with one line that names the holder, if the lock takes long.
        patience_seconds: How long is "long".

    Raises:
        EnvironmentNotFit: No folder for the lock file can be written.
    """
    path = lock_path(device)
    lock = FileLock(path)
    try:
        lock.acquire(timeout=patience_seconds)
    except Timeout:
        if on_wait is not None:
            on_wait(f"Waiting for {label or device}: {_holder(path)} is measuring on it.")
        lock.acquire()
    try:
        _holder_file(path).write_text(str(os.getpid()), encoding="utf-8")
        yield
    finally:
        lock.release()


def lock_path(device: str) -> Path:
    """Return the lock file of a device, in this user's runtime folder.

    Raises:
        EnvironmentNotFit: The folder cannot be made.
    """
    digest = hashlib.sha256(device.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return _runtime_folder() / f"device-{digest}.lock"


def _runtime_folder() -> Path:
    with warnings.catch_warnings():
        # Without a login session there is no runtime folder; the fall-back is as good for a lock.
        warnings.simplefilter("ignore")
        folder = Path(platformdirs.user_runtime_dir("smart_tuner"))
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        msg = f"{folder}: cannot be made ({error.strerror}); set XDG_RUNTIME_DIR to a folder of yours."
        raise EnvironmentNotFit(msg) from error
    if not os.access(folder, os.W_OK | os.X_OK):
        msg = f"{folder}: not writable; set XDG_RUNTIME_DIR to a folder of yours."
        raise EnvironmentNotFit(msg)
    return folder


def _holder_file(path: Path) -> Path:
    return path.with_suffix(".pid")


def _holder(path: Path) -> str:
    try:
        return f"process {int(_holder_file(path).read_text(encoding='utf-8'))}"
    except (OSError, ValueError):
        return "another process"
