"""What the installed runtime knows: its optimizers, rewrite rules and configuration keys.

Optimizers come from the log of one small session, the rest from the names in the binary. Both are
facts of one binary, so they are kept in the user's cache folder: children that validate a setting
must not pay for finding them again.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from platformdirs import user_cache_path

from smart_tuner.backends.onnxruntime.option import Kind
from smart_tuner.backends.onnxruntime.options import OPTION_BY_NAME, OPTIONS
from smart_tuner.backends.onnxruntime.passes import RULES
from smart_tuner.backends.onnxruntime.runtime import binary_path, import_runtime, runtime_version
from smart_tuner.backends.onnxruntime.survey import survey

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_tuner.backends.onnxruntime.option import Option

_SCHEMA = 1
_KEY = re.compile(rb"(?<=\0)(?:session|optimization|mlas|memory)\.[A-Za-z0-9_.]+(?=\0)")
_NAME = re.compile(rb"(?<=\0)[A-Z][A-Za-z0-9_]{5,60}(?=\0)")


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The names that one installed runtime takes.

    Attributes:
        version: E.g. ``onnxruntime 1.32.0``.
        optimizers: Level by graph optimizer, in order of running.
        rules: Rewrite rules, sorted.
        keys: Configuration keys that occur in the binary.
    """

    version: str
    optimizers: Mapping[str, int]
    rules: tuple[str, ...]
    keys: frozenset[str]

    @property
    def options(self) -> tuple[Option, ...]:
        """The options that this runtime knows."""
        return tuple(option for option in OPTIONS if self._knows(option))

    @property
    def names(self) -> tuple[str, ...]:
        """Every knob name, CUDA's left out."""
        return (
            *(option.name for option in self.options),
            "threads:intra",
            "threads:inter",
            *(f"optimizer:{name}" for name in self.optimizers),
            *(f"rule:{name}" for name in self.rules),
        )

    def option(self, name: str) -> Option | None:
        """The option of that name, if this runtime knows it."""
        option = OPTION_BY_NAME.get(name)
        return option if option is not None and self._knows(option) else None

    def _knows(self, option: Option) -> bool:
        if option.kind is Kind.ATTRIBUTE:
            return hasattr(import_runtime().SessionOptions, option.target)
        return option.target in self.keys


@lru_cache(maxsize=1)
def load_catalogue() -> Catalogue:
    """Return what the installed runtime knows, from the cache if it was found before.

    Raises:
        EnvironmentNotFit: The runtime is missing or does not work.
    """
    binary = binary_path()
    status = binary.stat()
    stamp = f"{runtime_version()} {status.st_size} {status.st_mtime_ns} {binary}"
    path = user_cache_path("smart_tuner") / f"{runtime_version().replace(' ', '-')}.json"
    found = _read(path, stamp)
    if found is None:
        found = _discover(binary)
        _write(path, stamp, found)
    return found


def _discover(binary: Path) -> Catalogue:
    """Scan the binary and run one small session."""
    data = binary.read_bytes()
    names = {name.decode() for name in _NAME.findall(data)}
    return Catalogue(
        version=runtime_version(),
        optimizers=survey(None).levels,
        rules=tuple(sorted(names & RULES.keys())),
        keys=frozenset(key.decode() for key in _KEY.findall(data)),
    )


def _read(path: Path, stamp: str) -> Catalogue | None:
    """A cached catalogue of this very binary; a damaged file counts as none."""
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        stored = json.loads(path.read_text(encoding="utf-8"))
        if stored["schema"] == _SCHEMA and stored["stamp"] == stamp:
            return Catalogue(
                version=str(stored["version"]),
                optimizers={str(name): int(level) for name, level in stored["optimizers"]},
                rules=tuple(str(name) for name in stored["rules"]),
                keys=frozenset(str(key) for key in stored["keys"]),
            )
    return None


def _write(path: Path, stamp: str, catalogue: Catalogue) -> None:
    """Keep a catalogue; without a writable cache folder it is found anew each time."""
    stored = {
        "schema": _SCHEMA,
        "stamp": stamp,
        "version": catalogue.version,
        "optimizers": list(catalogue.optimizers.items()),
        "rules": list(catalogue.rules),
        "keys": sorted(catalogue.keys),
    }
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(stored, file)
            Path(name).replace(path)
        finally:
            Path(name).unlink(missing_ok=True)
