"""Durations and sizes as people write them."""

from __future__ import annotations

import math
import re

_NUMBER = r"(\d+(?:\.\d+)?)"
_DURATION = re.compile(rf"(?:{_NUMBER}h)?(?:{_NUMBER}m)?(?:{_NUMBER}s)?")
_SECONDS = re.compile(_NUMBER)
_SIZE = re.compile(rf"{_NUMBER}\s*(?:([KMGT])(?:iB|B)?|B)?", re.IGNORECASE)
_UNLIMITED = "inf"


LONGEST = 100
"""Characters of what is no duration that are shown."""


def parse_duration(value: object) -> object:
    """Turn ``10m``, ``1h30m``, ``90s``, ``90`` or ``inf`` into seconds; other types pass through.

    Raises:
        ValueError: The text is none of these.
    """
    if isinstance(value, bool):
        msg = "a duration is a number of seconds or text; write 90s, 10m, 2h or 1h30m"
        raise ValueError(msg)  # noqa: TRY004, pydantic turns only this into its own error
    if not isinstance(value, str):
        return value
    text = value.strip().lower()
    if text == _UNLIMITED:
        return math.inf
    if _SECONDS.fullmatch(text):
        return float(text)
    match = _DURATION.fullmatch(text)
    if not text or match is None:
        msg = f"{value!r} is not a duration; write 90s, 10m, 2h or 1h30m"
        raise ValueError(msg)
    hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return hours * 3600 + minutes * 60 + seconds


def format_duration(seconds: float) -> str:
    """Write seconds so that ``parse_duration`` reads the same number."""
    if math.isinf(seconds):
        return _UNLIMITED
    text = f"{seconds:f}" if float(f"{seconds:f}") == seconds else f"{seconds:.20f}"
    return f"{text.rstrip('0').rstrip('.')}s"


def duration_word(value: object) -> str:
    """A duration for a command line; what a hand has made none of it stays as it is."""
    try:
        return format_duration(float(value))  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return str(value)[:LONGEST]


def parse_size(value: object) -> object:
    """Turn ``4G``, ``512M`` or ``1000000`` into bytes; other types pass through.

    Raises:
        ValueError: The text is none of these.
    """
    if not isinstance(value, str):
        return value
    match = _SIZE.fullmatch(value.strip())
    size = float(match[1]) * 1024 ** "_KMGT".find((match[2] or "_").upper()) if match else math.inf
    if math.isinf(size):
        msg = f"{value!r} is not a size; write 512M or 4G"
        raise ValueError(msg)
    return int(size)
