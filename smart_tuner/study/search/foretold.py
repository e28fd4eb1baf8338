"""What the accuracy model foretold of each trial, beside what was found: is it to be trusted?

The sampler's model is a pure function of the trials before, so that nothing has to be kept: each
trial is foretold from those with smaller numbers, as it was when it was proposed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from smart_tuner.samplers.route_sampler.allowances import learn_allowances
from smart_tuner.storages.keys import ACCURACY

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from smart_tuner.storages.history import TrialRecord

LEARNT_AFTER = 30
"""Trials before the model is held to what it says."""


@dataclass(frozen=True, slots=True)
class Foretold:
    """One trial.

    Attributes:
        number: Its number.
        reason: Why it was proposed.
        expected: Loss over epsilon that the trials before it let expect; 1 is just acceptable.
        found: Loss over epsilon.
        is_known: Whether each of its values had been in a trial with a loss before.
    """

    number: int
    reason: str
    expected: float
    found: float
    is_known: bool


def foretold(
    records: Sequence[TrialRecord], choices: Mapping[str, tuple[str, ...]]
) -> tuple[Foretold, ...]:
    """Foretell the loss of every trial that has one, from the trials before it.

    Args:
        records: Finished trials.
        choices: Choices by knob name, the default first.
    """
    columns = [(name, value) for name, values in choices.items() for value in values[1:]]
    known = sorted(
        (record for record in records if record.violation is not None),
        key=lambda record: record.number,
    )
    routes = [set(record.route.settings) for record in known]
    flags = np.array([[c in route for c in columns] for route in routes], dtype=bool)
    shares = np.array([record.violation for record in known], dtype=float)
    found = []
    for place in range(1, len(known)):
        before = flags[:place]
        model = learn_allowances(
            before, {ACCURACY: shares[:place]}, np.asarray(~before.any(axis=1))
        )
        expected = float(model.used(flags[place])[0] ** (1 / model.power[0]))
        found.append(
            Foretold(
                number=known[place].number,
                reason=known[place].reason,
                expected=expected,
                found=float(10 ** shares[place]),
                is_known=bool((before.any(axis=0) | ~flags[place]).all()),
            )
        )
    return tuple(found)


def violation_share(records: Sequence[TrialRecord], after: int = LEARNT_AFTER) -> float | None:
    """Share of the proposals after the first ones that broke epsilon; ``None`` without any."""
    later = [
        record.violation > 0
        for record in records
        if record.number >= after and record.violation is not None
    ]
    return sum(later) / len(later) if later else None
