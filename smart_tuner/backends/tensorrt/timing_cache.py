"""Timing caches: timings of kernels that one build leaves for the next."""

from __future__ import annotations

import shutil
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING

from smart_tuner.backends.tensorrt import api
from smart_tuner.backends.tensorrt.builder import make_builder
from smart_tuner.backends.tensorrt.logger import make_log
from smart_tuner.errors import RunError
from smart_tuner.model.files import whole_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from smart_tuner.backends.tensorrt.logger import BuildLog
    from smart_tuner.backends.tensorrt.sdk import Sdk

CACHE_FILE = "timing.cache"
REJECTED_FILE = "timing.cache.rejected"
_NO_OP = "no-op"


def attach_cache(
    config: api.BuilderConfig, source: Path | None, workdir: Path, log: BuildLog
) -> tuple[str, ...]:
    """Let a build start from a copy of ``source``, or from nothing; returns what to tell the user.

    The file itself is only read. A cache of another version or GPU, or a damaged one, is copied
    to ``timing.cache.rejected`` beside the engine and left unused.
    """
    notes: tuple[str, ...] = ()
    data = b""
    if source is not None:
        try:
            data = source.read_bytes()
        except OSError as error:
            notes = (f"timing cache {source.name} cannot be read ({error.strerror}): not used",)
    since = log.position
    with _deprecations_heard() as heard:
        if data and (why := _refused(config, data, log, since)):
            # Without a driver no cache is read at all, and a no-op takes none: not its fault.
            if not _is_no_op(heard) and source is not None:
                shutil.copyfile(source, workdir / REJECTED_FILE)
                notes += (f"timing cache {source.name} was not used ({why}); see {REJECTED_FILE}",)
            data = b""
        if not data:
            config.set_timing_cache(config.create_timing_cache(b""), False)  # noqa: FBT003
    if source is not None and _is_no_op(heard):
        notes = ("this compiler keeps no timings: the timing cache was not used",)
    return notes


def _refused(config: api.BuilderConfig, data: bytes, log: BuildLog, since: int) -> str:
    """Attach a cache; returns why it was refused, or nothing."""
    try:
        cache = config.create_timing_cache(data)
        is_set = config.set_timing_cache(cache, False)  # noqa: FBT003
    except (RuntimeError, TypeError, ValueError) as error:
        return " ".join(str(error).split())
    # An unreadable cache is replaced by an empty one with no more than a warning.
    said = [
        line for line in log.complaints(since, warnings=True) if "timing cache" in line.lower()
    ]
    if said:
        return said[-1].rstrip(".")
    return "" if is_set else "it is of another version or GPU"


def save_cache(config: api.BuilderConfig, workdir: Path) -> Path | None:
    """Write the timings that a build ended with; None where the compiler keeps none."""
    with _deprecations_heard() as heard:
        cache = config.get_timing_cache()
        data = memoryview(cache.serialize()) if cache is not None else None  # type: ignore[arg-type]  # Python 3.12 gave the buffer protocol a type
    if data is None or _is_no_op(heard):
        return None
    path = workdir / CACHE_FILE
    with whole_file(path) as file:
        file.write(data)
    return path


def cache_keys(sdk: Sdk, path: Path) -> frozenset[str] | None:
    """The keys of a cache file as text, to compare what two builds timed.

    Returns:
        None where the version cannot list them.

    Raises:
        RunError: The file is no timing cache of this version.
        EnvironmentNotFit: The SDK does not work here.
    """
    log = make_log(sdk)
    _, config = make_builder(sdk, log)
    # Keys are only shown by a configuration that may edit them; nothing is built with this one.
    editable = api.member(sdk.module.BuilderFlag, "EDITABLE_TIMING_CACHE")
    if editable is not None:
        config.set_flag(editable)
    try:
        data = path.read_bytes()
    except OSError as error:
        msg = f"timing cache {path} cannot be read: {error.strerror}"
        raise RunError(msg) from error
    with _deprecations_heard() as heard:
        why = _refused(config, data, log, log.position)
        cache: object = config.get_timing_cache()
    if _is_no_op(heard):
        return None
    if why:
        msg = f"timing cache {path} is not one of {sdk}: {why}"
        raise RunError(msg)
    if not isinstance(cache, api.HasCacheKeys):
        return None
    try:
        return frozenset(map(str, cache.queryKeys()))
    except RuntimeError:
        return None


@contextmanager
def _deprecations_heard() -> Iterator[list[warnings.WarningMessage]]:
    """Note deprecation warnings instead of showing them: TensorRT-RTX says so what is a no-op."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", DeprecationWarning)
        yield heard


def _is_no_op(heard: list[warnings.WarningMessage]) -> bool:
    return any(_NO_OP in str(item.message) for item in heard)
