"""Which route had which value: the table that effects and failures are learned from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from smart_tuner.storages.history import TrialRecord

    Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class ValueTable:
    """Values that were tried, defaults left out.

    Attributes:
        values: Knob and value of each column.
        flags: Which route has which value; shape (routes, values).
    """

    values: tuple[tuple[str, str], ...]
    flags: Flags


def value_table(records: Sequence[TrialRecord]) -> ValueTable:
    """Make the table of these trials, a row each, columns sorted by knob and value."""
    values = sorted({setting for record in records for setting in record.route.settings})
    places = {setting: place for place, setting in enumerate(values)}
    flags = np.zeros((len(records), len(values)), dtype=bool)
    for row, record in enumerate(records):
        for setting in record.route.settings:
            flags[row, places[setting]] = True
    return ValueTable(tuple(values), flags)
