"""The rules that every knob of a database must keep, whatever form it was read from."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from smart_tuner.errors import UserInputError
from smart_tuner.knobs.text import comparison_form, name_fault, shown, value_fault

if TYPE_CHECKING:
    from collections.abc import Iterable

    from smart_tuner.knobs.knob import Knob

MAX_KNOBS = 10_000
MAX_VALUES = 1_000


def refuse(place: str, fault: str) -> NoReturn:
    """Raise the error that names the place of a fault in a knob database.

    Raises:
        UserInputError: Always.
    """
    msg = f"Cannot read the knob database: {place}: {fault}."
    raise UserInputError(msg)


def check_knobs(knobs: Iterable[tuple[str, Knob]]) -> None:
    """Check the knobs of one database, each with the place it was read from.

    Names and values must be legal text and differ by more than their looks: ``on`` twice, or
    two texts that are equal after Unicode normalisation (NFKC), would collapse into one choice.
    An empty default is legal: it stands for "leave the knob unset".

    Raises:
        UserInputError: A knob breaks a rule; the message names its place.
    """
    seen: dict[str, str] = {}
    for place, knob in knobs:
        fault = name_fault(knob.name)
        if fault:
            refuse(place, fault)
        form = comparison_form(knob.name)
        if form in seen:
            refuse(place, f"the knob clashes with {seen[form]}; list it once")
        seen[form] = place
        _check_values(place, knob)


def _check_values(place: str, knob: Knob) -> None:
    if len(knob.values) > MAX_VALUES:
        refuse(place, f"more than {MAX_VALUES} values")
    outside = (knob.default,) if knob.default not in ("", *knob.values) else ()
    seen: set[str] = set()
    for value in (*knob.values, *outside):
        fault = value_fault(value)
        if fault:
            refuse(place, f"value '{shown(value)}': {fault}")
        form = comparison_form(value)
        if form in seen:
            refuse(place, f"value '{shown(value)}' is listed twice, or looks like another one")
        seen.add(form)
