"""Reading TOML files that users write."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from smart_tuner.errors import UserInputError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from pathlib import Path

MAX_BYTES = 1 << 25


def read_toml(path: Path, what: str) -> dict[str, Any]:
    """Read a TOML file.

    Args:
        path: The file.
        what: What the user calls it, for the message: ``base``, ``workload``.

    Raises:
        UserInputError: It cannot be read, is too large, or is not TOML.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            msg = (
                f"The {what} {path} is too large: {MAX_BYTES >> 20} MiB are enough for anybody's."
            )
            raise UserInputError(msg)
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        msg = f"Cannot read the {what} {path}: {error.strerror}."
        raise UserInputError(msg) from None
    except RecursionError:
        msg = f"The {what} {path} is not valid TOML: it is nested too deep."
        raise UserInputError(msg) from None
    except ValueError as error:  # also numbers of thousands of digits, which Python refuses
        msg = f"The {what} {path} is not valid TOML: {error}."
        raise UserInputError(msg) from None
