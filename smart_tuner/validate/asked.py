"""Metrics and epsilons as users write them."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from smart_tuner.errors import UserInputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_ITEM = re.compile(
    r"""\s*
    (?:(?: (?P<quoted>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*") | (?P<plain>[^,'"][^,]*) )\s*:)?
    (?P<number>[^,:'"]*)
    (?:,|\Z)""",
    re.VERBOSE | re.DOTALL,
)


def parse_metrics(texts: Sequence[str]) -> tuple[str | None, dict[str, str]]:
    """Read ``--metric`` values: ``linf``, ``scores=top1``, ``boxes=package.module:function``.

    The last equals sign separates output and metric, so names of outputs may hold some.

    Returns:
        The global metric, ``None`` if none was given, and metric by output name.

    Raises:
        UserInputError: A name is missing, or an output's or the global metric is given twice.
    """
    found: dict[str, str] = {}
    for text in texts:
        output, equals, metric = (part.strip() for part in text.rpartition("="))
        if not metric or (equals and not output):
            msg = f"Cannot read the metric {text!r}: write linf, or OUTPUT=linf for one output."
            raise UserInputError(msg)
        if output in found:
            whose = f"The metric of output {output!r}" if output else "The metric"
            msg = f"{whose} is given twice; give it once, and OUTPUT=METRIC for single outputs."
            raise UserInputError(msg)
        found[output] = metric
    return found.get(""), {output: metric for output, metric in found.items() if output}


def parse_epsilons(texts: Sequence[str]) -> tuple[float | None, dict[str, float]]:
    """Read ``--epsilon`` values: ``0.01``, ``boxes:0.5``, ``inf``.

    Several in one text are split at commas. The last colon separates name and number, so names
    may hold colons. Hostile names are quoted as in ``--shapes``: a name with a comma, a quote at
    its start, or blanks at its ends goes in single or double quotes, where a backslash takes the
    next character literally.

    Returns:
        The global epsilon, ``None`` if none was given, and epsilon by output name.

    Raises:
        UserInputError: A number is missing, wrong or negative, or one limit is given twice.
    """
    limits: dict[str | None, float] = {}
    for text in texts:
        for name, number in _split(text):
            limit = _parse_number(number, text)
            if name in limits:
                whose = "The global epsilon" if name is None else f"The epsilon of output {name!r}"
                msg = f"{whose} is given twice; give it once."
                raise UserInputError(msg)
            limits[name] = limit
    per_output = {name: limit for name, limit in limits.items() if name is not None}
    return limits.get(None), per_output


def _split(text: str) -> Iterator[tuple[str | None, str]]:
    """Name, ``None`` for the global limit, and number of each item of one text."""
    position = 0
    while True:
        item = _ITEM.match(text, position)
        if item is None:
            msg = f"Cannot read the epsilon {text!r}: write 0.01 or output:0.01."
            raise UserInputError(msg)
        yield _name(item), item["number"]
        position = item.end()
        if not item[0].endswith(","):
            return


def _name(item: re.Match[str]) -> str | None:
    if item["quoted"] is not None:
        return re.sub(r"\\(.)", r"\1", item["quoted"][1:-1], flags=re.DOTALL)
    return None if item["plain"] is None else item["plain"].rstrip()


def _parse_number(number: str, text: str) -> float:
    try:
        limit = float(number)
    except ValueError:
        limit = math.nan
    if not limit >= 0:
        msg = f"{number.strip()!r} in the epsilon {text!r} is not a number, 0 or more."
        raise UserInputError(msg)
    return limit
