"""Whether it is worth going on: what more trials are likely to bring, and what they cost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from smart_tuner.report.analysis.effects import Finding

if TYPE_CHECKING:
    from smart_tuner.report.analysis.effects import Effects
    from smart_tuner.report.analysis.history import History

LEAST_TRIALS = 8
"""Trials below which nothing is extrapolated."""

TRIALS_A_KNOB = 0.5
"""Likewise for each knob: with fewer, most values were tried once, and never by themselves."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """What going on would bring.

    Attributes:
        further_gain: Expected factor on the best gain from as many trials again; ``None`` if
            there are too few trials to tell.
        further_trials: How many trials that would be.
        further_seconds: What they would take.
        untried: Values that no trial had.
        unclear: Values whose effect is not known to within one percent.
        noise: Noise floor of one trial, ln; ``None`` if unknown.
        knobs: Knobs that any trial had.
        min_gain: The smallest gain that ships.
        worth_it: Whether the expected gain is at least the smallest one that ships, or too
            little is known to stop.
    """

    further_gain: float | None
    further_trials: int
    further_seconds: float
    untried: int
    unclear: int
    noise: float | None
    knobs: int
    min_gain: float
    worth_it: bool

    @property
    def is_within_noise(self) -> bool:
        """Whether what is looked for is less than what noise does to a single trial."""
        wanted = max(self.further_gain or self.min_gain, self.min_gain)
        return self.noise is not None and math.log(wanted) < self.noise


def outlook_of(history: History, effects: Effects) -> Outlook:
    """Extrapolate the best gain so far.

    A search finds large gains first. If what is found grows with the logarithm of the number of
    trials, as the best of ever more draws does, doubling the trials brings what the last doubling
    brought: the rise of ln(best gain) over the second half of the trials. The best gain is the
    luckiest of many noisy figures, so this is rather too high than too low.
    """
    trials = len(history.points)
    unclear = len(effects.of(Finding.UNCLEAR))
    seconds = history.points[-1].seconds if trials else 0.0
    further: float | None = None
    knobs = len({value.knob for value in effects.values})
    if trials >= max(LEAST_TRIALS, TRIALS_A_KNOB * knobs):
        middle = history.points[(trials - 1) // 2].incumbent
        further = history.points[-1].incumbent / middle
    worth_it = further is None or further >= history.min_gain
    return Outlook(
        further_gain=further,
        further_trials=trials,
        further_seconds=seconds,
        untried=effects.untried,
        unclear=unclear,
        noise=effects.floor,
        knobs=knobs,
        min_gain=history.min_gain,
        worth_it=worth_it,
    )


def expected_percent(outlook: Outlook) -> float:
    """Percent of the latency that would go; NaN if unknown."""
    return math.nan if outlook.further_gain is None else 100 * (1 - 1 / outlook.further_gain)
