"""Choosing which knobs of a database a study varies."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from smart_tuner.errors import UserInputError
from smart_tuner.knobs.space import SearchSpace
from smart_tuner.knobs.text import (
    PLACEHOLDERS,
    comparison_form,
    did_you_mean,
    many,
    shown,
    value_fault,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from smart_tuner.knobs.database import KnobDatabase
    from smart_tuner.knobs.knob import Knob

NOT_NAMED = "not among the knobs to search only"
FROZEN = "frozen"
OPEN = "open and without given values"
SETTLED = "left with a single choice"
OPT_IN = "changing what the network computes, searched only when asked for"
IDLE = "idle on this model"


@dataclass(frozen=True, slots=True)
class SpaceOptions:
    """What a user says about the search space. Knob names may be written with a leading dash.

    Attributes:
        only: Shell-style patterns of the knobs to search; empty for all.
        freeze: Shell-style patterns of knobs to leave as the base has them.
        ask: Names of opt-in knobs to search all the same.
        values: Values to search by knob name, instead of those in the database; open knobs are
            searched only with these. The default stays a choice.
        include_idle: Search the knobs that cannot act on the model, too.
    """

    only: tuple[str, ...] = ()
    freeze: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    include_idle: bool = False


def select_space(database: KnobDatabase, options: SpaceOptions) -> SearchSpace:
    """Select the knobs to search; every other one stays as the base has it.

    Raises:
        UserInputError: A pattern that matches no knob, an unknown knob, a value that a knob does
            not take, or nothing left to search.
    """
    reasons = left_out(database, options)
    knobs = tuple(knob for knob in _with_values(database, options) if knob.name not in reasons)
    if not knobs:
        counts = "; ".join(count_left_out(reasons)) or "the database is empty"
        msg = f"There is no knob to search: {counts}. Widen the selection."
        raise UserInputError(msg)
    return SearchSpace(knobs)


def left_out(database: KnobDatabase, options: SpaceOptions) -> Mapping[str, str]:
    """Why each knob that is not searched is left out, by name; one reason each.

    Raises:
        UserInputError: As ``select_space``.
    """
    only = _matched(database, options.only) if options.only else {knob.name for knob in database}
    frozen = _matched(database, options.freeze)
    asked = {database[_bare(name)].name for name in options.ask}
    reasons = {}
    for knob in _with_values(database, options):
        tests = (
            (knob.name not in only, NOT_NAMED),
            (knob.name in frozen, FROZEN),
            (knob.is_open and not knob.values, OPEN),
            (len(knob.choices) < 2, SETTLED),
            (bool(knob.opt_in) and knob.name not in asked, OPT_IN),
            (bool(knob.idle) and not options.include_idle, IDLE),
        )
        reason = next((reason for is_met, reason in tests if is_met), "")
        if reason:
            reasons[knob.name] = reason
    return reasons


def count_left_out(reasons: Mapping[str, str]) -> tuple[str, ...]:
    """One phrase a reason with its count, the most frequent first: ``14 knobs open and ...``."""
    counts = Counter(reasons.values()).most_common()
    return tuple(f"{many(count, 'knob')} {why}" for why, count in counts)


def _matched(database: KnobDatabase, patterns: Iterable[str]) -> set[str]:
    matched: set[str] = set()
    for pattern in patterns:
        names = {knob.name for knob in database if fnmatchcase(knob.name, _bare(pattern))}
        if not names:
            close = did_you_mean(_bare(pattern), [knob.name for knob in database])
            msg = f"No knob matches '{shown(pattern)}'. {close}"
            raise UserInputError(msg)
        matched |= names
    return matched


def _with_values(database: KnobDatabase, options: SpaceOptions) -> tuple[Knob, ...]:
    """The database's knobs with the user's values in place of their own."""
    given = {_bare(name): tuple(values) for name, values in options.values.items()}
    for name, values in given.items():
        _check_given(database[name], values)
    return tuple(
        replace(knob, values=given[knob.name]) if knob.name in given else knob for knob in database
    )


def _check_given(knob: Knob, values: tuple[str, ...]) -> None:
    for value in values:
        fault = value_fault(value)
        if not fault and not knob.allows(value):
            fault = f"it takes {', '.join(knob.choices)}"
        if not fault and value in PLACEHOLDERS and value not in knob.choices:
            fault = "give numbers, not their type"
        if fault:
            msg = f"Knob {knob.name} cannot take the value '{shown(value)}': {fault}."
            raise UserInputError(msg)
    forms = [comparison_form(value) for value in {*values, knob.default}]
    if len(set(forms)) < len(forms) or len(set(values)) < len(values):
        msg = f"Knob {knob.name} is given the same value twice; give each value once."
        raise UserInputError(msg)


def _bare(name: str) -> str:
    return name.strip().removeprefix("-")
