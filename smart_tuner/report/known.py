"""What a study knows so far: the best route, how it was reached, and how noisy a figure is."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from statistics import median
from typing import TYPE_CHECKING

from smart_tuner.report.words import OUTCOME_WORDS, SHOWN_WORDS, counted, percent
from smart_tuner.storages.history import outcome_key
from smart_tuner.storages.keys import NO_EFFECT
from smart_tuner.trial.trial import TrialOutcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from smart_tuner.route.build_route import BuildRoute
    from smart_tuner.storages.history import TrialRecord

BARS = "▁▂▃▄▅▆▇█"
ASCII_BARS = ".:-=+*#@"

GOOD = (OUTCOME_WORDS[TrialOutcome.FEASIBLE], NO_EFFECT)
"""What trials are called that a study may ship."""


def best_words(number: int, gain: float, half_width: float | None) -> str:
    """A gain as the search saw it: ``1.263x +-0.3 % (trial 30)``."""
    spread = "" if half_width is None else f" +-{percent(half_width)}"
    return f"{gain:.3f}x{spread} (trial {number})"


@dataclass(frozen=True, slots=True)
class Best:
    """The fastest feasible trial, as the search saw it.

    Attributes:
        number: Trial number.
        route: Its route.
        gain: Baseline over its latency.
        half_width: Half of the 95 % interval on ln(gain), if known.
    """

    number: int
    route: BuildRoute
    gain: float
    half_width: float | None

    def __str__(self) -> str:
        return best_words(self.number, self.gain, self.half_width)


@dataclass(frozen=True, slots=True)
class Known:
    """What finished trials tell.

    Attributes:
        best: The best trial that is faster than the default; ``None`` without one.
        incumbents: The best gain after each trial.
        half_widths: Of every gain that was measured, on ln(gain).
        counts: Trials by the word of their outcome.
    """

    best: Best | None = None
    incumbents: tuple[float, ...] = ()
    half_widths: tuple[float, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, records: Iterable[TrialRecord], baseline_ms: float | None) -> Known:
        """Fold finished trials into what they tell."""
        known = cls()
        for record in records:
            is_known = baseline_ms and record.value_ms
            gain = baseline_ms / record.value_ms if baseline_ms and record.value_ms else None
            trial = Best(record.number, record.route, gain or 1.0, record.half_width)
            is_good = bool(is_known) and record.outcome is TrialOutcome.FEASIBLE
            key = outcome_key(record)
            known = known.after(trial, SHOWN_WORDS.get(key, key), is_good=is_good)
        return known

    def after(self, trial: Best, word: str, *, is_good: bool) -> Known:
        """What is known after one more trial.

        Args:
            trial: The trial.
            word: How it ended.
            is_good: It was measured and is feasible.
        """
        best = self.best
        if is_good and trial.gain > (best.gain if best else 1.0):
            best = trial
        width = trial.half_width
        is_measured = width is not None and math.isfinite(width) and width > 0
        return replace(
            self,
            best=best,
            incumbents=(*self.incumbents, best.gain if best else 1.0),
            half_widths=(*self.half_widths, width) if is_measured and width else self.half_widths,
            counts=Counter({**self.counts, word: self.counts.get(word, 0) + 1}),
        )

    @property
    def noise(self) -> float | None:
        """Half of the 95 % interval on ln(gain) of a typical trial; ``None`` if none is known."""
        return median(self.half_widths) if self.half_widths else None

    @property
    def tried(self) -> str:
        """How many trials there were and how many are good: ``41: 28 ok, 6 no effect``."""
        good = {word: self.counts[word] for word in GOOD if word in self.counts}
        rest = counted(good) or "none ok"
        return f"{sum(self.counts.values())}: {rest}" if self.counts else "none yet"

    @property
    def not_ok(self) -> str:
        """How many trials ended otherwise, the most frequent first; empty if none did."""
        bad = ((word, count) for word, count in self.counts.items() if word not in GOOD)
        return counted(dict(sorted(bad, key=lambda item: -item[1])))


def sparkline(values: tuple[float, ...], width: int, *, ascii_only: bool = False) -> str:
    """A curve in one line of at most ``width`` characters, from its lowest value to its highest.

    Where there are more values than characters, each character stands for the last value of an
    equal share of them. A flat curve is a line at the bottom.
    """
    if not values or width < 1:
        return ""
    bars = ASCII_BARS if ascii_only else BARS
    count = min(width, len(values))
    shown = [values[(place + 1) * len(values) // count - 1] for place in range(count)]
    low, span = min(shown), max(shown) - min(shown)
    top = len(bars) - 1
    return "".join(bars[round(top * (value - low) / span) if span else 0] for value in shown)


def beside(route: BuildRoute, best: Best | None) -> str:
    """A route in as few words as there are: by itself, or as what differs from the best one.

    Args:
        route: The route.
        best: The best trial when it was proposed.
    """
    text = str(route) or "(default)"
    if best is None:
        return text
    known = set(best.route.settings)
    added = [f"-{name}={value}" for name, value in route.settings if (name, value) not in known]
    reset = [f"-{name}" for name in best.route.values if name not in route.values]
    parts = [f"trial {best.number}"]
    parts += [f"with {' '.join(added)}"] if added else []
    parts += [f"without {' '.join(reset)}"] if reset else []
    return min(text, " ".join(parts), key=len)
