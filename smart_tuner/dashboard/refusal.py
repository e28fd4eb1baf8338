"""What answers whoever wants to change a study through the dashboard."""

from __future__ import annotations

from typing import NoReturn

from smart_tuner.errors import UserInputError


def refuse() -> NoReturn:
    """Refuse to write.

    Raises:
        UserInputError: Always.
    """
    msg = "The dashboard only reads studies: `smart-tuner tune` is what changes them."
    raise UserInputError(msg)
