"""A finished study in the form that evidence is taken from, wherever it comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from smart_tuner.priors.document import StudyEntry

    Setting = tuple[str, str]
    Flags = npt.NDArray[np.bool_]
    Figures = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Observation:
    """One finished trial.

    Attributes:
        values: Value by knob name where it is not the default.
        log_ratio: ln(latency / latency of the default route); ``None`` without a latency.
        failed: Not built, not run, not applied, or out of time.
        half_width: Half of the 95 % interval on the log ratio, if known.
        violation: log10(loss / epsilon); ``None`` where it was not reached or not checked.
        unchanged: The engine was the default route's.
    """

    values: Mapping[str, str]
    log_ratio: float | None
    failed: bool = False
    half_width: float | None = None
    violation: float | None = None
    unchanged: bool = False

    @property
    def is_feasible(self) -> bool:
        """Whether it ran within epsilon."""
        return not self.failed and (self.violation is None or self.violation <= 0)


@dataclass(frozen=True, slots=True)
class ObservedStudy:
    """A study as evidence.

    Attributes:
        entry: Where it comes from.
        choices: Choices by knob name, the default first.
        trials: What was tried, in order.
    """

    entry: StudyEntry
    choices: Mapping[str, tuple[str, ...]]
    trials: tuple[Observation, ...]

    @property
    def settings(self) -> tuple[Setting, ...]:
        """Knob and value of every choice that is not a default."""
        return tuple((k, value) for k, values in self.choices.items() for value in values[1:])

    def tried_settings(self) -> tuple[Setting, ...]:
        """Those that some trial had, in order of the space."""
        tried = {item for trial in self.trials for item in trial.values.items()}
        return tuple(item for item in self.settings if item in tried)


def flags_of(trials: tuple[Observation, ...], settings: tuple[Setting, ...]) -> Flags:
    """Which trial has which setting; shape (trials, settings)."""
    column = {item: place for place, item in enumerate(settings)}
    flags = np.zeros((len(trials), len(settings)), dtype=bool)
    for row, trial in enumerate(trials):
        for item in trial.values.items():
            if item in column:
                flags[row, column[item]] = True
    return flags
