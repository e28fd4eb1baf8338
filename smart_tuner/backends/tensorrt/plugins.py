"""Plugin libraries: loaded before a model is parsed and before a plan is loaded, and hashed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smart_tuner.errors import EnvironmentNotFit
from smart_tuner.model.files import file_digest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from smart_tuner.backends.tensorrt.logger import BuildLog
    from smart_tuner.backends.tensorrt.sdk import Sdk

_loaded: set[tuple[str, str]] = set()
"""Module and library; a library's creators register themselves once a process."""


def load_plugins(sdk: Sdk, libraries: Sequence[Path], log: BuildLog) -> dict[str, str]:
    """Load plugin libraries in this process; returns the digest of each by its path.

    Raises:
        EnvironmentNotFit: A library is missing or does not load.
    """
    sdk.module.init_libnvinfer_plugins(log.native, "")
    digests: dict[str, str] = {}
    for path in libraries:
        try:
            digests[str(path)] = file_digest(path)
        except OSError as error:
            msg = f"plugin {path} cannot be read: {error.strerror}; see plugins in the base."
            raise EnvironmentNotFit(msg) from error
        if (str(sdk), digests[str(path)]) not in _loaded:
            _load(sdk, path, log)
            _loaded.add((str(sdk), digests[str(path)]))
    return digests


def _load(sdk: Sdk, path: Path, log: BuildLog) -> None:
    since = log.position
    try:
        handle = sdk.module.get_plugin_registry().load_library(str(path))
        reason = "" if handle is not None else log.reason(since)
    except (RuntimeError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())
    if reason:
        msg = f"plugin {path} does not load into {sdk}: {reason}; was it built for this version?"
        raise EnvironmentNotFit(msg)
