"""Dataclasses as strict JSON, and typed reading of what may have been damaged."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from enum import Enum
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from smart_tuner.errors import UserInputError

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_NOT_FINITE = ("inf", "-inf", "nan")


def to_json(value: object) -> Any:
    """Return a value as plain JSON types; NaN and infinities become the text ``nan``, ``-inf``.

    Raises:
        TypeError: The value has no JSON form, e.g. bytes.
    """
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, np.generic):
        return to_json(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, PurePath):
        return str(value)
    return _container_to_json(value)


def _container_to_json(value: object) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        return {field.name: to_json(getattr(value, field.name)) for field in fields}
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [to_json(item) for item in value]
    msg = f"{type(value).__name__} has no JSON form"
    raise TypeError(msg)


class Fields:
    """One JSON object, read field by field.

    Every getter raises UserInputError with one line that names the field, if it is missing or of
    the wrong type.
    """

    def __init__(self, data: object, where: str) -> None:
        """Wrap a parsed JSON value.

        Args:
            data: What ``json.loads`` returned.
            where: What it is, for messages: ``trial record``.

        Raises:
            UserInputError: It is not an object.
        """
        if not isinstance(data, dict):
            msg = f"{where}: expected an object, found {type(data).__name__}."
            raise UserInputError(msg)
        self._data: dict[str, object] = data
        self._where = where

    def text(self, name: str) -> str:
        """Return a text."""
        return self._typed(name, str, "text")

    def flag(self, name: str) -> bool:
        """Return true or false."""
        return self._typed(name, bool, "true or false")

    def whole(self, name: str) -> int:
        """Return a whole number."""
        value = self._get(name)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._wrong(name, "a whole number")
        return value

    def number(self, name: str) -> float:
        """Return a number; ``nan``, ``inf`` and ``-inf`` are numbers too."""
        return self._as_number(self._get(name), name)

    def numbers(self, name: str) -> tuple[float, ...]:
        """Return a list of numbers."""
        return tuple(self._as_number(item, name) for item in self._list(name))

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts."""
        items = self._list(name)
        if not all(isinstance(item, str) for item in items):
            raise self._wrong(name, "a list of texts")
        return tuple(str(item) for item in items)

    def text_map(self, name: str) -> Mapping[str, str]:
        """Return an object whose values are texts."""
        items = self._map(name)
        if not all(isinstance(item, str) for item in items.values()):
            raise self._wrong(name, "an object of texts")
        return {key: str(item) for key, item in items.items()}

    def number_map(self, name: str) -> Mapping[str, float]:
        """Return an object whose values are numbers."""
        return {key: self._as_number(item, name) for key, item in self._map(name).items()}

    def whole_map(self, name: str) -> Mapping[str, int]:
        """Return an object whose values are whole numbers."""
        items = self._map(name)
        if not all(type(item) is int for item in items.values()):
            raise self._wrong(name, "an object of whole numbers")
        return {key: item for key, item in items.items() if isinstance(item, int)}

    def optional(self, name: str, read: Callable[[object], T]) -> T | None:
        """Return what ``read`` makes of the value, or None for null."""
        value = self._get(name)
        return None if value is None else read(value)

    def later(self, name: str, read: Callable[[object], T]) -> T | None:
        """Return what ``read`` makes of a field that older records lack; None for null or none."""
        value = self._data.get(name)
        return None if value is None else read(value)

    def each(self, name: str, read: Callable[[object], T]) -> tuple[T, ...]:
        """Return what ``read`` makes of every item of a list."""
        return tuple(read(item) for item in self._list(name))

    def nested(self, name: str, read: Callable[[object], T]) -> T:
        """Return what ``read`` makes of the value."""
        return read(self._get(name))

    def _get(self, name: str) -> object:
        if name not in self._data:
            msg = f"{self._where}: {name!r} is missing."
            raise UserInputError(msg)
        return self._data[name]

    def _typed(self, name: str, kind: type[T], words: str) -> T:
        value = self._get(name)
        if not isinstance(value, kind):
            raise self._wrong(name, words)
        return value

    def _list(self, name: str) -> list[object]:
        return list(self._typed(name, list, "a list"))

    def _map(self, name: str) -> dict[str, object]:
        return dict(self._typed(name, dict, "an object"))

    def _as_number(self, value: object, name: str) -> float:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        if isinstance(value, str) and value in _NOT_FINITE:
            return float(value)
        raise self._wrong(name, "a number")

    def _wrong(self, name: str, words: str) -> UserInputError:
        return UserInputError(f"{self._where}: {name!r} is not {words}.")
