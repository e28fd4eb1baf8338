"""What the installed runtime knows: its optimizers, rewrite rules and configuration keys.

Optimizers come from the log of one small session, the rest from the names in the binary. Both are
facts of one binary, so they are kept in the user's cache folder: children that validate a setting
must not pay for finding them again.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from smart_tuner.backends.onnxruntime.kept import keep, read_kept, runtime_stamp
from smart_tuner.backends.onnxruntime.option import Kind
from smart_tuner.backends.onnxruntime.options import OPTION_BY_NAME, OPTIONS
from smart_tuner.backends.onnxruntime.passes import RULES
from smart_tuner.backends.onnxruntime.runtime import binary_path, import_runtime, runtime_version
from smart_tuner.backends.onnxruntime.survey import survey

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from smart_tuner.backends.onnxruntime.option import Option

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
    name, stamp = runtime_version().replace(" ", "-"), runtime_stamp()
    kept = read_kept(name, stamp)
    found = None if kept is None else _read(kept)
    if found is None:
        found = _discover(binary_path())
        keep(name, stamp, _written(found))
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


def _read(stored: Mapping[str, Any]) -> Catalogue | None:
    """What ``_written`` made; a damaged answer counts as none."""
    with suppress(ValueError, KeyError, TypeError, AttributeError):
        return Catalogue(
            version=str(stored["version"]),
            optimizers={str(name): int(level) for name, level in stored["optimizers"]},
            rules=tuple(str(name) for name in stored["rules"]),
            keys=frozenset(str(key) for key in stored["keys"]),
        )
    return None


def _written(catalogue: Catalogue) -> dict[str, Any]:
    """A catalogue as plain data."""
    return {
        "version": catalogue.version,
        "optimizers": list(catalogue.optimizers.items()),
        "rules": list(catalogue.rules),
        "keys": sorted(catalogue.keys),
    }
