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
