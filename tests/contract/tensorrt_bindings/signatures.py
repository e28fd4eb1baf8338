"""Signatures as pybind11 writes them into docstrings, and as our protocols declare them."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_ANONYMOUS = re.compile(r"arg\d+|\*args|\*\*kwargs")


@dataclass(frozen=True)
class Parameter:
    """One parameter: its name, and whether it may be left out."""

    name: str
    has_default: bool


Signature = tuple[Parameter, ...]


def documented(name: str, doc: str) -> list[Signature]:
    """The overloads of a function, without ``self``."""
    return [_parse(text) for text in _heads(name, doc)]


def declared(function: object) -> Signature:
    """The signature of a protocol's method, without ``self``."""
    assert callable(function)
    parameters = list(inspect.signature(function).parameters.values())
    return tuple(
        Parameter(found.name, found.default is not inspect.Parameter.empty)
        for found in parameters
        if found.name != "self"
    )


def fits(wanted: Signature, real: Signature) -> bool:
    """Whether calls that our declaration allows are calls that the SDK allows.

    Parameters go by position and name; the SDK may have more, if those have defaults.
    """
    if len(wanted) > len(real) or not all(extra.has_default for extra in real[len(wanted) :]):
        return False
    return all(
        (ours.name == theirs.name or _ANONYMOUS.fullmatch(theirs.name))
        and (theirs.has_default or not ours.has_default)
        for ours, theirs in zip(wanted, real, strict=False)
    )


def _heads(name: str, doc: str) -> Iterator[str]:
    """What stands between the outer parentheses of each ``name(...) -> ...``."""
    for found in re.finditer(rf"(?:^|\n)\s*(?:\d+\. )?{re.escape(name)}\(", doc):
        depth, start = 1, found.end()
        for position in range(start, len(doc)):
            depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(doc[position], 0)
            if depth == 0:
                yield doc[start:position]
                break


def _parse(text: str) -> Signature:
    parts: list[str] = [""]
    depth = 0
    for letter in text:
        depth += {"(": 1, "[": 1, "<": 1, ")": -1, "]": -1, ">": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    names = [part.strip() for part in parts if part.strip() not in ("", "*", "/")]
    parsed = tuple(Parameter(re.split(r"[:=]", part)[0].strip(), "=" in part) for part in names)
    return tuple(found for found in parsed if found.name != "self")
