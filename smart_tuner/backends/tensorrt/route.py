"""Setting a build route, and making sure that it was taken.

The SDK says nothing when it rejects a route: the setter of its Python bindings drops the answer.
So the route is checked against the compiler's own list before, read back after, and looked for in
the log of the build.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from smart_tuner.backends.tensorrt import api
from smart_tuner.backends.tensorrt.route_knobs import NO_ROUTES, route_knobs
from smart_tuner.backends.tensorrt.settings import BUILD_SETTINGS, RUN_SETTINGS
from smart_tuner.errors import NotApplied, UserInputError
from smart_tuner.knobs.database import KnobDatabase
from smart_tuner.knobs.text import did_you_mean, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from smart_tuner.backends.tensorrt.logger import BuildLog
    from smart_tuner.backends.tensorrt.sdk import Sdk

MARK = "[TuningBuildRoute]"
"""Begins the line with which a build confirms its route."""


def set_route(
    sdk: Sdk, config: api.BuilderConfig, values: Mapping[str, str], log: BuildLog
) -> str:
    """Set route knobs and read them back; returns the route's text, empty if there are none.

    Raises:
        NotApplied: The version has no routes, lacks a knob, or does not take a value; says which.
    """
    if not values:
        return ""
    database = route_knobs(config)
    if not isinstance(config, api.HasBuildRoutes):
        msg = (
            f"{sdk} has no build routes, TensorRT 11.1 and newer have them: "
            f"-{shown(next(iter(values)))} cannot be set"
        )
        raise NotApplied(msg)
    if database is None:
        msg = f"-{shown(next(iter(values)))} cannot be set: {NO_ROUTES}"
        raise NotApplied(msg)
    _check(database, values)
    text = " ".join(f"-{name}={value}" for name, value in sorted(values.items()))
    since = log.position
    try:
        config.build_route = text
    except (RuntimeError, TypeError, ValueError) as error:
        msg = f"{sdk} rejected the route: {' '.join(str(error).split())}"
        raise NotApplied(msg) from error
    _compare(f"{sdk}", values, config.build_route, log.complaints(since, warnings=True))
    return text


def check_base(sdk: Sdk, config: api.BuilderConfig, names: Iterable[str]) -> None:
    """Refuse names of a base that are neither settings nor knobs: a base is written by hand.

    Args:
        sdk: The SDK.
        config: A configuration of it.
        names: What is left of the base without settings and builder knobs.

    Raises:
        UserInputError: A name is unknown; shows the nearest ones.
    """
    database = route_knobs(config) or KnobDatabase((), "without build routes")
    known = (*BUILD_SETTINGS, *RUN_SETTINGS, *(knob.name for knob in database))
    for name in names:
        if name not in database:
            hint = did_you_mean(name, known)
            msg = f"Unknown knob or base setting: {shown(name)} ({sdk}). {hint}"
            raise UserInputError(msg)


def confirm_route(sdk: Sdk, route: str, log: BuildLog) -> None:
    """Look for a route in the log of the build that just ended.

    Raises:
        NotApplied: The log does not name it, or names another one.
    """
    if not route:
        return
    said = [line.partition(MARK)[2] for line in log.find(MARK)]
    if not said:
        msg = f"{sdk} did not confirm the route: its log has no line {MARK}"
        raise NotApplied(msg)
    _compare(f"the log of {sdk}", _values(route), said[-1], ())


def _check(database: KnobDatabase, values: Mapping[str, str]) -> None:
    for name, value in values.items():
        if name not in database:
            hint = did_you_mean(name, [knob.name for knob in database])
            msg = f"knob {shown(name)} is not known to tuner {database.tuner_version}; {hint}"
            raise NotApplied(msg)
        knob = database[name]
        if not knob.allows(value):
            msg = f"{shown(name)}={shown(value)}: it takes {', '.join(knob.choices)}"
            raise NotApplied(msg)


def _compare(
    who: str, wanted: Mapping[str, str], answer: str, complaints: tuple[str, ...]
) -> None:
    """Refuse a route that came back otherwise, naming the knobs that did."""
    got = _values(answer)
    said = f"; it said: {complaints[-1]}" if complaints else ""
    if wanted and not got:
        route = " ".join(f"-{name}={value}" for name, value in wanted.items())
        msg = f"{who} rejected the route {shown(route)}: it reads back empty{said}"
        raise NotApplied(msg)
    for name, value in wanted.items():
        if got.get(name) != value:
            reads = f"as {got[name]}" if name in got else "without it"
            msg = f"{who} overrode {name}={value}: the route reads back {reads}{said}"
            raise NotApplied(msg)
    if extra := sorted(got.keys() - wanted.keys()):
        msg = f"{who} set more than was asked for: {extra[0]}={got[extra[0]]}{said}"
        raise NotApplied(msg)


def _values(text: str) -> dict[str, str]:
    """The ``-name=value`` words of a text."""
    words = (word for word in text.split() if word.startswith("-") and "=" in word)
    pairs = (word.removeprefix("-").partition("=") for word in words)
    return {name: value for name, _, value in pairs}
