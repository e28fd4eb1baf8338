"""What runners of different backends have in common."""

from __future__ import annotations

import gc
import hashlib
from contextlib import contextmanager
from typing import TYPE_CHECKING

from smart_tuner.errors import RunError, SmartTunerError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from smart_tuner.engine.build import Engine


def engine_bytes(engine: Engine) -> bytes:
    """Read an engine's file.

    Raises:
        RunError: It is missing, or is not the one that was built.
    """
    try:
        data = engine.path.read_bytes()
    except OSError as error:
        msg = f"engine {engine.path} cannot be read: {error.strerror}"
        raise RunError(msg) from error
    if hashlib.sha256(data).hexdigest() != engine.sha256:
        msg = f"engine {engine.path} is not the file that was built (its digest differs)"
        raise RunError(msg)
    return data


def in_one_line(error: BaseException) -> str:
    """Text of an error on one line; its type if it says nothing."""
    return " ".join(str(error).split()) or type(error).__name__


@contextmanager
def run_errors(what: str, reason: Callable[[BaseException], str] = in_one_line) -> Iterator[None]:
    """Turn errors of a runtime and its bindings, whatever their class, into RunError.

    Args:
        what: What did not work, e.g. ``the engine did not load``.
        reason: Says why in one line.
    """
    try:
        yield
    except SmartTunerError:
        raise
    except Exception as error:
        msg = f"{what}: {reason(error)}"
        raise RunError(msg) from error


@contextmanager
def no_collection() -> Iterator[None]:
    """Keep the garbage collector out of timed runs."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
