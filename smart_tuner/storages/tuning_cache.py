"""Reads trtexec's tuning cache, and Torch-TensorRT's variant of it: one JSON object a line.

The first line is a header (tuner version, accuracy rule, expression, the default of every knob),
each further line a row: ``iter, build_route, crash, error_message, accuracy_loss, gpu_time``. Real
files are rarely that tidy: a kill tears the last line, the second phase of ``mixed`` starts
``iter`` at 0 again, editors add byte order marks and Windows line ends. All of that is read; what
cannot be used is counted by kind, never an error.

What a row says is what trtexec knew: one mean over one run of one build, warm-up included. It is
no measurement of ours.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO

from smart_tuner.errors import UserInputError
from smart_tuner.knobs.text import clean_sentence
from smart_tuner.storages.tuning_cache_row import (
    CacheHeader,
    CacheRow,
    Unusable,
    header_of,
    row_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

MAX_BYTES = 1 << 28
"""Size of the largest file that is read: about half a million rows of 10 knobs."""

MAX_LINE_BYTES = 1 << 22
MAX_ROWS = 100_000

TORN, NO_JSON, NO_OBJECT = "torn last line", "no JSON", "no JSON object"
TOO_LONG, NEITHER, SECOND = "line too long", "neither header nor row", "row of a second run"
TOO_MANY = f"row beyond the first {MAX_ROWS:,}"

_HEADER_KEYS = frozenset(
    ("tuner_version", "tuning_expr", "default_build_route", "searching_algorithm")
)


@dataclass(frozen=True, slots=True)
class TuningCache:
    """What a tuning cache holds.

    Attributes:
        path: The file.
        header: The header; None if the file has none.
        rows: The usable rows, in the file's order.
        dropped: How many lines were left out, by reason.
        undecodable: Lines that hold bytes which are no UTF-8; they show as U+FFFD.
    """

    path: Path
    header: CacheHeader | None
    rows: tuple[CacheRow, ...]
    dropped: Mapping[str, int]
    undecodable: int = 0


def read_tuning_cache(path: Path) -> TuningCache:
    """Read a tuning cache as far as it can be read.

    Raises:
        UserInputError: The file cannot be opened, is too large, or holds neither header nor row.
    """
    reader = _Reader()
    place = clean_sentence(str(path))
    try:
        with path.open("rb") as file:
            for line, is_last in _lines(file, place):
                reader.take(line, is_last=is_last)
    except OSError as error:
        msg = f"Cannot read the tuning cache {place}: {error.strerror}. Check the path."
        raise UserInputError(msg) from None
    if reader.header is None and not reader.rows:
        what = f" ({counted_kinds(reader.dropped)})" if reader.dropped else ", it is empty"
        msg = (
            f"{place} is no tuning cache{what}: give the file that trtexec's --tuningCacheFile "
            "named (best_config.json without that flag)."
        )
        raise UserInputError(msg)
    return TuningCache(
        path, reader.header, tuple(reader.rows), dict(reader.dropped), reader.undecodable
    )


def counted_kinds(dropped: Mapping[str, int]) -> str:
    """Counts by kind as a phrase: ``2 no JSON, 1 torn last line``."""
    return ", ".join(f"{count} {kind}" for kind, count in dropped.items())


def _lines(file: BinaryIO, place: str) -> Iterator[tuple[bytes, bool]]:
    """Each line, at most one byte longer than allowed, and whether its line end is missing.

    Raises:
        UserInputError: The file is larger than ``MAX_BYTES``.
    """
    taken = 0
    while line := file.readline(MAX_LINE_BYTES + 1):
        yield line, not line.endswith(b"\n")
        while line and not line.endswith(b"\n"):
            taken += len(line)
            _check_size(taken, place)
            line = file.readline(MAX_LINE_BYTES)
        taken += len(line)
        _check_size(taken, place)


def _check_size(taken: int, place: str) -> None:
    if taken > MAX_BYTES:
        msg = f"{place} is larger than {MAX_BYTES >> 20} MiB: no tuning cache is; check the path."
        raise UserInputError(msg)


@dataclass(slots=True)
class _Reader:
    """What was read so far."""

    header: CacheHeader | None = None
    rows: list[CacheRow] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    undecodable: int = 0
    _is_over: bool = False
    _phase: int = 1
    _last: int = -1

    def take(self, line: bytes, *, is_last: bool) -> None:
        """Read one line."""
        if len(line) > MAX_LINE_BYTES:
            self.dropped[TOO_LONG] += 1
            return
        text = self._decoded(line)
        if not text:
            return
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            self.dropped[TORN if is_last else NO_JSON] += 1
            return
        if isinstance(data, dict):
            self._object(data)
        else:
            self.dropped[NO_OBJECT] += 1

    def _decoded(self, line: bytes) -> str:
        try:
            text = line.decode()
        except UnicodeDecodeError:
            self.undecodable += 1
            text = line.decode(errors="replace")
        return text.strip(" \t\r\n\ufeff")

    def _object(self, data: dict[str, Any]) -> None:
        if "build_route" in data or "gpu_time" in data:
            self._row(data)
        elif not _HEADER_KEYS.isdisjoint(data):
            self._header(data)
        else:
            self.dropped[NEITHER] += 1

    def _header(self, data: dict[str, Any]) -> None:
        """Take the first header; after another one, times are those of another run."""
        header = header_of(data)
        if self.header is None and not self.rows:
            self.header = header
        elif header != self.header:
            self._is_over = True

    def _row(self, data: dict[str, Any]) -> None:
        if self._is_over or len(self.rows) >= MAX_ROWS:
            self.dropped[SECOND if self._is_over else TOO_MANY] += 1
            return
        index = data.get("iter")
        number = index if type(index) is int and index >= 0 else self._last + 1
        if number <= self._last:
            self._phase += 1
        self._last = number
        row = row_of(data, number, self._phase, self.header or CacheHeader())
        if isinstance(row, Unusable):
            self.dropped[row.value] += 1
        else:
            self.rows.append(row)
