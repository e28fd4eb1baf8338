"""Errors that cross the line between child and parent as data."""

from __future__ import annotations

from typing import Any

from smart_tuner.errors import (
    BackendNotFound,
    BuildError,
    EnvironmentNotFit,
    ModelError,
    NotApplied,
    RunError,
    SmartTunerError,
    UserInputError,
)

# A subclass stands before its base: the first that fits is what is raised again.
_KINDS: tuple[type[SmartTunerError], ...] = (
    BuildError,
    NotApplied,
    RunError,
    ModelError,
    UserInputError,
    BackendNotFound,
    EnvironmentNotFit,
)
_MEMORY_SIGNS = ("bad_alloc", "failed to allocate", "cannot allocate", "bad allocation")
_OUT_OF_MEMORY = "out of memory"
_MAX_LENGTH = 500


def failure_to_json(error: Exception, otherwise: type[SmartTunerError]) -> dict[str, Any]:
    """Return an error as data.

    Args:
        error: What was raised.
        otherwise: The kind that an error of none of our kinds gets.
    """
    kind = next((kind for kind in _KINDS if isinstance(error, kind)), otherwise)
    return {"kind": kind.__name__, "message": one_line_reason(error)}


def failure_from_json(data: dict[str, Any]) -> SmartTunerError:
    """Return the error that a child sent."""
    kind = next((kind for kind in _KINDS if kind.__name__ == data.get("kind")), RunError)
    return kind(str(data.get("message")))


def one_line_reason(error: Exception) -> str:
    """Return why something failed on one line, memory failures recognised."""
    text = " ".join(str(error).split())[:_MAX_LENGTH]
    if isinstance(error, MemoryError):
        return f"{_OUT_OF_MEMORY}: {text}" if text else _OUT_OF_MEMORY
    if not isinstance(error, SmartTunerError):
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    lower = text.lower()
    if _OUT_OF_MEMORY not in lower and any(sign in lower for sign in _MEMORY_SIGNS):
        return f"{_OUT_OF_MEMORY}: {text}"
    return text
