"""What routes and expressions have in common: tokens, knob look-up, the shape of an error.

The grammar is trtexec's. Where trtexec lets a fault pass, we refuse it by name; see
``smart_tuner.route.expression``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from smart_tuner.errors import UserInputError
from smart_tuner.knobs.text import PLACEHOLDERS, did_you_mean, shown, value_fault

if TYPE_CHECKING:
    from collections.abc import Iterator

    from smart_tuner.knobs.database import KnobDatabase
    from smart_tuner.knobs.knob import Knob

MAX_CHARACTERS = 1_000_000


@dataclass(frozen=True, slots=True)
class Token:
    """One ``-knob=...`` of a text, with the words that say where it stands."""

    text: str
    place: str

    def refuse(self, cause: str, remedy: str) -> NoReturn:
        """Raise the error for a fault in this token.

        Raises:
            UserInputError: Always: place, cause, remedy.
        """
        refuse(self.place, cause, remedy)

    @property
    def shown(self) -> str:
        """The token for a message: one printable line of readable length."""
        return shown(self.text)


def refuse(place: str, cause: str, remedy: str) -> NoReturn:
    """Raise the error for a fault in a route or expression.

    Raises:
        UserInputError: Always: place, cause, remedy.
    """
    msg = f"{place}: {cause}. {remedy}"
    raise UserInputError(msg)


def split_tokens(text: str, place: str) -> Iterator[Token]:
    """Split at white space outside brackets.

    trtexec splits at spaces only, so that a tab or the CR of a Windows file ends up in a value.
    The place of each token names its line when there is more than one.
    """
    if len(text) > MAX_CHARACTERS:
        refuse(place, f"longer than {MAX_CHARACTERS} characters", "Shorten it.")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    has_lines = "\n" in text.rstrip()
    depth, line, start, first_line = 0, 1, None, 1
    for position, character in enumerate(f"{text}\n"):
        if character.isspace() and (depth == 0 or position == len(text)):
            if start is not None:
                where = f"{place}, line {first_line}" if has_lines else place
                yield Token(text[start:position], where)
            start = None
        elif start is None:
            start, first_line = position, line
        depth = max(0, depth + (character == "[") - (character == "]"))
        line += character == "\n"


def knob_and_value(token: Token, database: KnobDatabase) -> tuple[Knob, str]:
    """Take a token apart at its first ``=``.

    Raises:
        UserInputError: No ``=``, or no such knob.
    """
    name, equals, value = token.text.partition("=")
    if not equals:
        token.refuse(
            f"Invalid expression (no '='): {token.shown}",
            "Write -knob=value or -knob=[a|b].",
        )
    if not name.startswith("-"):
        remedy = "A knob begins with a dash, and no space stands around '='."
        token.refuse(f"Unknown knob: {shown(name)}", remedy)
    bare = name.removeprefix("-")
    if bare not in database:
        names = [f"-{knob.name}" for knob in database]
        token.refuse(f"Unknown knob: {shown(name)}", did_you_mean(name, names))
    return database[bare], value


def check_fixed_value(token: Token, knob: Knob, value: str) -> None:
    """Check a value that stands without brackets.

    trtexec lets the literal ``int`` pass, which is how real databases mark an open knob, and any
    text on an open knob.

    Raises:
        UserInputError: The knob does not take the value.
    """
    if value in PLACEHOLDERS and value not in knob.choices:
        token.refuse(
            f"Unbounded expression '{value}' not allowed: {token.shown}",
            f"Write the number that -{knob.name} is to take.",
        )
    fault = value_fault(value)
    if fault or not knob.allows(value):
        token.refuse(
            f"Invalid value for knob: -{knob.name}={shown(value)}", fault_remedy(knob, fault)
        )


def fault_remedy(knob: Knob, fault: str) -> str:
    """Say what a knob takes instead of a value that it does not take."""
    takes = (
        "any number" if knob.is_open else ", ".join(choice for choice in knob.choices if choice)
    )
    remedy = f"It takes {takes}."
    return f"{fault.capitalize()}. {remedy}" if fault else remedy
