"""Expressions: many routes in one text, ``-kgen:tiling=[0|1|2] -conv_lowering=off``.

The grammar and the causes of errors are trtexec's (``--tuneBuildRoutes``). What differs:

* the same knob twice is refused; trtexec names it twice in every route;
* tabs, CR and LF separate like spaces, and files may have a byte order mark, Windows line ends
  and ``#`` comments; trtexec takes all of these for part of a knob or value;
* ``int`` is refused like ``int32_t``, since real databases mark open knobs with it;
* a bracket that is never closed and an empty item (``[0||2]``) are refused by name; trtexec calls
  the first an invalid value and drops the second;
* an open knob may have a list of explicit values (``-peep:max=[1|2]``); trtexec refuses it with
  ``Knob has unbounded values (int32_t)``, and so cannot sweep any of these knobs. The values, in
  a list or alone, must be legal text; trtexec leaves a single one unchecked.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from smart_tuner.errors import UserInputError
from smart_tuner.knobs.text import (
    PLACEHOLDERS,
    clean_sentence,
    comparison_form,
    shown,
    value_fault,
)
from smart_tuner.route.grammar import (
    MAX_CHARACTERS,
    check_fixed_value,
    fault_remedy,
    knob_and_value,
    refuse,
    split_tokens,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from smart_tuner.knobs.database import KnobDatabase
    from smart_tuner.knobs.knob import Knob
    from smart_tuner.route.grammar import Token

_HOW = "Write -knob=[a|b] to vary a knob, -knob=value to fix it"
_COMMENT = re.compile(r"(?<!\S)#[^\r\n]*")


@dataclass(frozen=True, slots=True)
class ExpressionItem:
    """One knob of an expression.

    Attributes:
        knob: The knob, as its database has it.
        values: The listed values, or the single fixed one.
        is_variable: Whether the values stood in brackets; ``[on]`` is variable with one value.
    """

    knob: Knob
    values: tuple[str, ...]
    is_variable: bool

    @property
    def baseline(self) -> str:
        """The value in the baseline: a fixed one stays, a variable knob has its default."""
        return self.knob.default if self.is_variable else self.values[0]

    def __str__(self) -> str:
        values = "|".join(self.values)
        return (
            f"-{self.knob.name}=[{values}]" if self.is_variable else f"-{self.knob.name}={values}"
        )


@dataclass(frozen=True, slots=True)
class Expression:
    """A set of routes: the product of what its items allow. Its knobs are distinct."""

    items: tuple[ExpressionItem, ...]

    def __post_init__(self) -> None:
        names = {item.knob.name for item in self.items}
        if len(names) < len(self.items):
            msg = f"An expression names a knob twice: {shown(str(self))}. Name each knob once."
            raise UserInputError(msg)

    def __str__(self) -> str:
        """The text that ``parse_expression`` reads back as an equal expression."""
        return " ".join(str(item) for item in self.items)


def parse_expression(text: str, database: KnobDatabase) -> Expression:
    """Read an expression.

    Raises:
        UserInputError: The text is no expression over this database; the cause is worded as
            trtexec words it, followed by the remedy.
    """
    return _parse(text, database, "Cannot parse the expression")


def read_expression_file(path: Path, database: KnobDatabase) -> Expression:
    """Read an expression from a UTF-8 text file; ``#`` after white space begins a comment.

    Raises:
        UserInputError: The file cannot be read, or as ``parse_expression``, with the line.
    """
    place = f"Cannot parse the expression in {clean_sentence(str(path))}"
    try:
        with path.open("rb") as file:
            content = file.read(MAX_CHARACTERS + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        msg = f"Cannot open the expression file {clean_sentence(str(path))}: {reason}. Check the path."
        raise UserInputError(msg) from error
    if len(content) > MAX_CHARACTERS:
        refuse(place, f"longer than {MAX_CHARACTERS} bytes", "Shorten it.")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        refuse(place, "it is no UTF-8 text", "Save it as UTF-8.")
    return _parse(_COMMENT.sub(" ", text), database, place)


def expression_over(knobs: Iterable[Knob]) -> Expression:
    """The expression that varies every given knob over all its values.

    Raises:
        UserInputError: An open knob without values.
    """
    items = tuple(ExpressionItem(knob, knob.values, is_variable=True) for knob in knobs)
    for item in items:
        if not item.values:
            msg = f"Knob {item.knob.name} is open: an expression over it needs explicit values."
            raise UserInputError(msg)
    return Expression(items)


def _parse(text: str, database: KnobDatabase, place: str) -> Expression:
    if not text:
        refuse(place, "Empty input", f"{_HOW}.")
    items: dict[str, ExpressionItem] = {}
    for token in split_tokens(text, place):
        item = _item(token, database)
        name = item.knob.name
        if name in items:
            remedy = f"Name it once, with all its values: -{name}=[a|b]."
            token.refuse(f"Duplicate knob in expression: -{name}", remedy)
        items[name] = item
    if not items:
        refuse(place, "No expressions found", f"{_HOW}.")
    return Expression(tuple(items.values()))


def _item(token: Token, database: KnobDatabase) -> ExpressionItem:
    knob, value = knob_and_value(token, database)
    if "[" not in value:
        check_fixed_value(token, knob, value)
        return ExpressionItem(knob, (value,), is_variable=False)
    values = _split_list(token, value)
    _check_list(token, knob, values)
    return ExpressionItem(knob, values, is_variable=True)


def _split_list(token: Token, text: str) -> tuple[str, ...]:
    before, _, rest = text.partition("[")
    inner, closing, after = rest.partition("]")
    if not closing:
        remedy = "Close the list with ']'; in a shell, quote the whole expression."
        token.refuse(f"Unclosed bracket in expression: {token.shown}", remedy)
    for side, bracket, where in ((before, "[", "before"), (after, "]", "after")):
        if side.strip():
            token.refuse(
                "Invalid expression format "
                f"(unexpected content {where} '{bracket}'): {token.shown}",
                "Put a space between two knobs, and nothing else around the list.",
            )
    if "..." in inner:
        remedy = "List the values to try one by one."
        token.refuse(f"Unbounded expression not allowed: {token.shown}", remedy)
    values = tuple(value.strip() for value in inner.split("|"))
    if not any(values):
        token.refuse(f"Empty value list in expression: {token.shown}", f"{_HOW}.")
    if not all(values):
        remedy = "Put a value between every two bars."
        token.refuse(f"Empty item in value list: {token.shown}", remedy)
    return values


def _check_list(token: Token, knob: Knob, values: tuple[str, ...]) -> None:
    seen: set[str] = set()
    for value in values:
        form = comparison_form(value)
        if form in seen:
            cause = f"Duplicate value '{shown(value)}' in expression: {token.shown}"
            token.refuse(cause, "List each value once.")
        seen.add(form)
        if knob.is_open and value in PLACEHOLDERS and value not in knob.choices:
            token.refuse(
                f"Unbounded expression '{value}' not allowed: {token.shown}",
                "List the values to try one by one.",
            )
        fault = value_fault(value)
        if fault or not knob.allows(value):
            fault = fault or f"'{shown(value)}' is none of its values"
            token.refuse(f"Invalid value(s) for knob: -{knob.name}", fault_remedy(knob, fault))
