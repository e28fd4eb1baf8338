"""How outcomes, gains and routes are worded; every display uses these."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from smart_tuner.storages.keys import NO_EFFECT, OVER_LIMIT
from smart_tuner.trial.trial import TrialOutcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_tuner.study.progress.events import TrialFinished

OUTCOME_WORDS = {
    TrialOutcome.FEASIBLE: "ok",
    TrialOutcome.INFEASIBLE: "over epsilon",
    TrialOutcome.BUILD_FAILED: "build failed",
    TrialOutcome.RUN_FAILED: "run failed",
    TrialOutcome.TIMED_OUT: "timed out",
    TrialOutcome.NOT_APPLIED: "not applied",
}

DEFAULT_WORD = "the default"
"""What the trial of the default itself is called: it changes nothing, and is meant to."""

SHOWN_WORDS = {outcome.value: word for outcome, word in OUTCOME_WORDS.items()}
"""The same by stored outcome; what is counted apart from the outcomes is its own word."""


def outcome_word(event: TrialFinished) -> str:
    """The outcome in a word or two."""
    if event.over_limits and event.outcome is TrialOutcome.INFEASIBLE:
        return OVER_LIMIT
    return NO_EFFECT if event.unchanged else OUTCOME_WORDS[event.outcome]


def percent(log_half_width: float) -> str:
    """A half width on ln(gain) as a percentage of the gain."""
    if not math.isfinite(log_half_width):
        return "?"
    figure = 100 * math.expm1(log_half_width)
    return f"{figure:.1f} %" if figure < 100 else f"{figure:.0f} %"


def latency_percent(effect: float) -> float:
    """An effect on ln(latency) as a percentage of the latency; negative is faster."""
    return 100 * math.expm1(effect)


def shortened(text: str, room: int) -> str:
    """Cut a text to ``room`` characters, an ellipsis at its end."""
    return text if len(text) <= room else f"{text[: room - 1]}\N{HORIZONTAL ELLIPSIS}"


def duration(seconds: float) -> str:
    """Seconds for people: ``42 s``, ``9 min``, ``2.5 h``; ``no limit`` for infinity."""
    if math.isinf(seconds):
        return "no limit"
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 100 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def budget_phrase(spent: float, total: float) -> str:
    """How much of a budget is spent, for people: ``28 s of 30 s spent``."""
    whole = "" if math.isinf(total) else f" of {duration(total)}"
    return f"{duration(spent)}{whole} spent"


def clock(spent: float, total: float) -> str:
    """How much of a budget is spent: ``2:05 of 10:00``, or ``2:05`` without a limit."""
    return _clock(spent) if math.isinf(total) else f"{_clock(spent)} of {_clock(total)}"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def counted(trials: Mapping[str, int]) -> str:
    """Trials by stored outcome as a phrase: ``12 ok, 1 build failed``."""
    return ", ".join(f"{count} {SHOWN_WORDS.get(name, name)}" for name, count in trials.items())


def ended(trials: Mapping[str, int]) -> str:
    """How trials ended, the default told from routes that turned out to be its equal.

    Args:
        trials: How many by stored outcome, the default among those without effect.
    """
    others = {**trials, NO_EFFECT: trials.get(NO_EFFECT, 0) - 1}
    if others[NO_EFFECT] < 0:
        return counted(trials)
    rest = counted({name: count for name, count in others.items() if count})
    return ", ".join(part for part in ("the default", rest) if part)


def times(count: int) -> str:
    """How often: ``once``, ``twice``, ``3 times``."""
    return {1: "once", 2: "twice"}.get(count, f"{count} times")
