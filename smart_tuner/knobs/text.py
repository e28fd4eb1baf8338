"""Which text a knob's name and values may be, and how foreign text is shown in a message.

Names and values travel in build routes (``-name=value``), expressions (``[a|b]``), tables and
file names of logs. Text that could not be read back from those is refused when a database is read.
"""

from __future__ import annotations

import unicodedata
from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_NAME_CHARACTERS = 200
MAX_VALUE_CHARACTERS = 200
MAX_HELP_CHARACTERS = 4_000

PLACEHOLDERS = ("int", "int32_t")
"""What databases write in place of a value when a knob is open; never a value itself."""

_SHOWN_CHARACTERS = 80


def name_fault(name: str) -> str:
    """Say what is wrong with a knob name (without its leading dash); empty when it is legal."""
    if name.startswith("-"):
        return "the name begins with a second dash"
    if "=" in name:
        return "the name holds '='"
    return _fault(name, "name", MAX_NAME_CHARACTERS)


def value_fault(value: str) -> str:
    """Say what is wrong with the text of a value; empty when it is legal."""
    if "..." in value:
        return "the value holds '...', which marks an open list"
    return _fault(value, "value", MAX_VALUE_CHARACTERS)


def _fault(text: str, what: str, limit: int) -> str:
    if not text:
        return f"the {what} is empty"
    if len(text) > limit:
        return f"the {what} is longer than {limit} characters"
    for character in text:
        if character in "[]|":
            return f"the {what} holds {character!r}, which expressions use"
        if character.isspace() or not character.isprintable():
            return f"the {what} holds white space or a control character"
    return ""


def comparison_form(text: str) -> str:
    """The form in which two texts are compared to find those that only look different."""
    return unicodedata.normalize("NFKC", text.strip())


def clean_sentence(text: str) -> str:
    """Foreign prose on one line: control characters become ``?``, so no terminal obeys them."""
    line = " ".join(text.split())[:MAX_HELP_CHARACTERS]
    return "".join(character if character.isprintable() else "?" for character in line)


def shown(text: str) -> str:
    """Foreign text for a message: one line, printable, cut to a readable length."""
    line = clean_sentence(text[: 4 * _SHOWN_CHARACTERS])
    return line if len(line) <= _SHOWN_CHARACTERS else f"{line[:_SHOWN_CHARACTERS]}..."


def many(count: int, noun: str) -> str:
    """A count with its noun: ``1 trial``, ``2,000 trials``."""
    return f"{count} {noun}" if count == 1 else f"{count:,} {noun}s"


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """A sentence that offers the closest names, or says where all of them are listed."""
    close = get_close_matches(word[:MAX_NAME_CHARACTERS], list(names), n=3)
    if close:
        return f"Did you mean {' or '.join(close)}?"
    return "`smart-tuner knobs` lists all knobs."
