"""What the compiler says: kept for messages and for the check of a route, written to the log."""

from __future__ import annotations

import re
import sys
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from smart_tuner.backends.tensorrt import api
    from smart_tuner.backends.tensorrt.sdk import Sdk

_ERROR, _WARNING, _INFO = 1, 2, 3
_LABELS = {0: "internal error", 1: "error", 2: "warning", 3: "info"}
_KEPT_LINES = 4000
_PREFIX = re.compile(r"^(?:\[[\w.:]+\]\s*|[\w.:]+:\s+)?(?:\[\w+\]\s*)?Error Code \d+: ")
_PLACE = re.compile(r"\s*\(?In \S+ at \S+?:\d+\)?|\s*\[[\w./]+\.(?:cpp|h|cu):[\w:]+:\d+\]")
_OUT_OF_MEMORY = re.compile(r"out ?of ?memory|cudaErrorMemoryAllocation|bad_alloc", re.IGNORECASE)
# Without a driver every other call complains of it, also where nothing needs one.
_NO_DRIVER = re.compile(
    r"CUDA driver version is insufficient|no CUDA-capable device|cudaError 35\b"
)


class BuildLog:
    """Messages of one build or one loaded engine, and of what else runs while it lives.

    The SDK hears one logger a process for as long as any builder, runtime or refitter lives, and
    ignores those that come later. So there is one, and it tells every log.

    Attributes:
        native: The SDK's logger object.
    """

    def __init__(self, module: api.Module) -> None:
        """Listen to the SDK's one logger."""
        self._lines: deque[tuple[int, str]] = deque(maxlen=_KEPT_LINES)
        self._count = 0
        self.native, listeners = _shared(module)
        listeners.add(self)

    def take(self, severity: int, line: str) -> None:
        """Keep a line."""
        self._lines.append((severity, line))
        self._count += 1

    def find(self, mark: str) -> Iterator[str]:
        """Yield the lines that hold a text, oldest first."""
        return (line for _, line in self._lines if mark in line)

    @property
    def position(self) -> int:
        """How many lines there were; ``complaints`` takes it to look only at later ones."""
        return self._count

    def complaints(self, since: int = 0, *, warnings: bool = False) -> tuple[str, ...]:
        """Distinct errors, source places cut off, the talk of a missing driver left out.

        Args:
            since: A ``position``, to leave out what was said before.
            warnings: Whether warnings count too.
        """
        limit = _WARNING if warnings else _ERROR
        first = max(0, since - (self._count - len(self._lines)))
        lines = [line for severity, line in list(self._lines)[first:] if severity <= limit]
        told = [line for line in lines if not _NO_DRIVER.search(line)]
        return tuple(dict.fromkeys(map(_readable, told or lines)))

    def reason(self, since: int = 0) -> str:
        """Say in one line why something failed; warnings only where there were no errors."""
        said = self.complaints(since) or self.complaints(since, warnings=True)
        text = "; ".join(said[-3:]) or "it gave no reason"
        return f"out of memory: {text}" if _OUT_OF_MEMORY.search(text) else text


def make_log(sdk: Sdk) -> BuildLog:
    """Make a log; one for each build, and one for each loaded engine."""
    return BuildLog(sdk.module)


def _readable(line: str) -> str:
    return _PLACE.sub("", _PREFIX.sub("", line)).strip()


_loggers: dict[int, tuple[api.Module, object, weakref.WeakSet[BuildLog]]] = {}
"""By the module's id: the module, its logger, and who listens."""


def _shared(module: api.Module) -> tuple[object, weakref.WeakSet[BuildLog]]:
    """The one logger of a module, never given up, and who listens to it."""
    if id(module) not in _loggers:
        listeners: weakref.WeakSet[BuildLog] = weakref.WeakSet()

        def tell(severity: int, text: str) -> None:
            if severity > _INFO:
                return
            line = " ".join(text.split())
            for log in tuple(listeners):
                log.take(severity, line)
            sys.stderr.write(f"{_LABELS.get(severity, 'error')}: {line}\n")

        _loggers[id(module)] = (module, _derive(module.ILogger, tell), listeners)
    _, native, listeners = _loggers[id(module)]
    return native, listeners


def _derive(base: type[Any], take: Any) -> object:
    """Make an object of a class derived from the SDK's, which is only known at run time."""

    def start(self: object) -> None:
        base.__init__(self)

    def log(_self: object, severity: Any, text: str) -> None:
        take(int(severity), text)

    return type("SmartTunerLogger", (base,), {"__init__": start, "log": log})()
