"""What runners of different backends have in common."""

from __future__ import annotations

import gc
import hashlib
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from smart_tuner.errors import RunError, SmartTunerError
from smart_tuner.model.dtypes import numpy_type, stored_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from smart_tuner.engine.build import Engine

_ALL_ONES, _PATTERN = 0xFF, 0xA5


def element_bits(dtype: str) -> int:
    """Bits an element of a type; below 8 elements are packed, the first in the lowest bits."""
    return stored_bytes(dtype, 8)


def poison_byte(dtype: str) -> int:
    """The byte that buffers of a type are overwritten with: NaN where all ones are one.

    Args:
        dtype: numpy's or ml_dtypes' name, as in ``TensorSpec.dtype``; no text.
    """
    if element_bits(dtype) < 8:
        return _PATTERN
    kind = numpy_type(dtype)
    ones = np.full(kind.itemsize, _ALL_ONES, np.uint8).view(kind)
    return _ALL_ONES if kind.kind not in "biu" and np.isnan(ones)[0] else _PATTERN


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
