"""Words of a verdict: the page, the report and the terminal all take them from here."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from smart_tuner.knobs.text import many

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_tuner.study.proof.gain import Gain

ONCE = "one measurement"
DIGITS = 3


@dataclass(frozen=True, slots=True)
class Candidates:
    """Routes beside the default, none of which ships.

    Attributes:
        best: Gain of the best of them; ``None`` if none has a latency with an interval.
        source: What stands behind that gain, in words.
        compared: How many of them ran within epsilon and every limit.
        tried: How many there are.
        broke: What befell the others, in words.
    """

    best: Gain | None
    source: str
    compared: int
    tried: int
    broke: str

    def finding(self, min_gain: float) -> str:
        """The verdict on them; what may reach the smallest gain is not said to be none."""
        is_open = self.best is not None and self.best.high >= min_gain
        none = f"No gain of {min_gain:g}x or more{' is proven' if is_open else ''}"
        parts = [] if self.best is None else [f"best candidate {self._best(self.best, min_gain)}"]
        if self.compared == self.tried:
            parts.append(
                "the only route was compared"
                if self.tried == 1
                else f"all {self.tried} routes were compared"
            )
        else:
            lost = self.tried - self.compared
            parts.append(
                f"{self.compared} of {self.tried} routes were compared, {lost} {self.broke}"
            )
        return f"{none}: {', '.join(parts)}"

    def _best(self, gain: Gain, min_gain: float) -> str:
        """Never rounded up to the gain that would ship: 1.0099x is not 1.010x."""
        figure = round(gain.value, DIGITS)
        if gain.value < min_gain <= figure:
            figure -= 10**-DIGITS
        return f"{figure:.{DIGITS}f}x ({sure_words(gain, self.source)})"


def sure_words(gain: Gain, source: str) -> str:
    """How sure a gain is, e.g. ``95 % interval 1.055 to 1.079, 5 fresh builds a side``."""
    if math.isinf(gain.high):
        return f"no interval, {source}"
    return f"95 % interval {gain.interval}, {source}"


def builds_words(builds: int) -> str:
    """What stands behind a route gain."""
    return f"{many(builds, 'fresh build')} a side"


def within_words(accuracy: Mapping[str, Any]) -> str:
    """The accuracy constraint in words, e.g. ``within epsilon 0.001 (linf)``.

    Args:
        accuracy: That table of ``study.toml``.
    """
    own = accuracy.get("per_output") or {}
    metric = accuracy.get("metric", "")
    if not own:
        return f"within epsilon {limit_text(accuracy.get('epsilon', 'inf'))} ({metric})"
    limits = ", ".join(f"{name} {limit_text(limit)}" for name, limit in own.items())
    return f"within epsilon {limits} ({metric})"


def limit_text(epsilon: object) -> str:
    """An epsilon, which may be the text ``inf``."""
    return f"{float(str(epsilon)):g}"
