"""What a machine says when a study can no longer be written, in one line."""

from __future__ import annotations

import contextlib
import errno
from typing import TYPE_CHECKING

from smart_tuner.errors import EnvironmentNotFit
from smart_tuner.study.files.kept import storage_errors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from smart_tuner.study.files.folder import StudyFolder

UNFIT = frozenset(
    (
        *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS, errno.ESTALE),
        *(errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR, errno.EMFILE, errno.ENFILE),
    )
)
"""What a machine that is not fit says when a file is written."""


@contextlib.contextmanager
def writable(folder: StudyFolder, storage: str | None) -> Iterator[None]:
    """Turn a full disk, lost rights or a lost database, wherever they are met, into one line.

    Args:
        folder: The study folder.
        storage: Address of the database, if there is one.

    Raises:
        EnvironmentNotFit: Names the thing and the remedy.
    """
    try:
        with storage_errors(storage) if storage else contextlib.nullcontext():
            yield
    except OSError as error:
        if error.errno not in UNFIT:
            raise
        place = error.filename or folder.root
        msg = (
            f"Cannot write to {place}: {error.strerror or error}; make room or fix its rights, "
            "then run the same command again: nothing finished is lost."
        )
        raise EnvironmentNotFit(msg) from error
