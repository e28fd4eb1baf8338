"""What a prior says, sorted for people who decide what to try.

A value that may as well do harm is no advice, and neither is one whose only hope is an assumption:
each value stands in one list, by its chances as a whole rather than by those it has if it matters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from smart_tuner.priors.fold import Fold, Folded

    Setting = tuple[str, str]
    Pairs = tuple[tuple[Setting, Fold], ...]

FIRST = 5
GOOD_CHANCE, FAIR_CHANCE = 0.15, 0.05
"""Least chance of faster to be tried first, and to be tried where trials are cheap."""

CLEARLY = 2.0
"""How many times the one chance must be the other to be called larger."""

WORTH = 0.01
"""Least size, ln(latency ratio), to be worth a trial, and least harm to be worth a warning."""

SEEN = 0.5
"""Share of a size that studies must have shown; below, it is mostly the built-in assumption."""

BREAKS = 0.3
IDLE = 0.1


@dataclass(frozen=True, slots=True)
class Claims:
    """What a prior says; each value stands in one list.

    Attributes:
        first: Clearly likelier faster than slower, and worth it; chance times size in order.
        cheap: Some study saw it help, but the chance is small or that of slower is as large.
        harmful: Clearly likelier slower, the largest expected slow-down first.
        breaks: Probably breaks trials or the accuracy limit, the likeliest first.
        idle: Probably changes nothing.
        unsure: Everything else.
    """

    first: Pairs
    cheap: Pairs
    harmful: Pairs
    breaks: Pairs
    idle: Pairs
    unsure: Pairs


def claims_of(folded: Folded) -> Claims:
    """Sort what a prior says."""
    left = dict(folded.values)
    breaks = _take(left, _breaks, lambda found: max(found.failure, found.violation or 0.0))
    first = _take(left, _is_good, lambda found: found.promise)
    cheap = _take(left, _is_fair, lambda found: found.promise)
    harmful = _take(left, _is_harmful, lambda found: found.harm)
    idle = _take(left, lambda found: found.active < IDLE, lambda _: 0.0)
    return Claims(
        first[:FIRST], (*first[FIRST:], *cheap)[:FIRST], harmful, breaks, idle, tuple(left.items())
    )


def names_of(pairs: Iterable[tuple[Setting, Fold]]) -> list[str]:
    """Knob and values, one text a knob."""
    found: dict[str, list[str]] = {}
    for (name, value), _ in pairs:
        found.setdefault(name, []).append(value)
    return [
        f"{name}={', '.join(sorted(values, key=lambda text: (len(text), text)))}"
        for name, values in sorted(found.items())
    ]


def _take(
    left: dict[Setting, Fold], belongs: Callable[[Fold], bool], order: Callable[[Fold], float]
) -> Pairs:
    """Move what belongs to a list out of the rest, the largest first."""
    taken = [(item, found) for item, found in left.items() if belongs(found)]
    for item, _ in taken:
        del left[item]
    return tuple(sorted(taken, key=lambda pair: (-order(pair[1]), pair[0])))


def _breaks(found: Fold) -> bool:
    return max(found.failure, found.violation or 0.0) >= BREAKS


def _is_good(found: Fold) -> bool:
    is_clear = found.chance_faster >= CLEARLY * found.chance_slower
    return is_clear and found.chance_faster >= GOOD_CHANCE and _has_helped(found)


def _is_fair(found: Fold) -> bool:
    return found.chance_faster >= FAIR_CHANCE and _has_helped(found)


def _has_helped(found: Fold) -> bool:
    return found.gain >= WORTH and found.gain_seen >= SEEN


def _is_harmful(found: Fold) -> bool:
    return found.chance_slower >= CLEARLY * found.chance_faster and found.harm >= WORTH
