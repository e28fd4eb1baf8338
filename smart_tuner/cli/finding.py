"""One thing that ``doctor`` looked at."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        subject: What.
        state: ``ok``, ``note`` or ``missing``.
        text: What was found, and the remedy if one is needed.
    """

    subject: str
    state: str
    text: str
