"""A random forest over the important options, after BOCA (Chen and others, ICSE 2021).

BOCA has no package and no licence, so this is the paper's algorithm written anew on scikit-learn:
a forest learns the cost; the eight most important options are tried in every combination, each
with settings of the others drawn at random, the fewer the longer the search lasts; expected
improvement picks. Two changes: options are values of knobs, and settings are drawn near the
default instead of uniformly.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats
from sklearn.ensemble import RandomForestRegressor
from typing_extensions import override

from smart_tuner.bench.rivals.history import STARTUP_FLIPS, STARTUP_TRIALS, AskTellSampler

if TYPE_CHECKING:
    import numpy.typing as npt

    from smart_tuner.bench.rivals.history import Choices, Told, Values

    Flags = npt.NDArray[np.float64]

IMPORTANT = 8
DRAWS = 256
"""Settings of the unimportant options beside each combination, before they decay."""

MOST_CANDIDATES = 8192
SCALE, DECAY, OFFSET = 10.0, 0.5, 20
"""The paper's decay: half of the draws are left ten trials after the twentieth."""

TREES = 100


class BocaSampler(AskTellSampler):
    """A forest, the important options in full, the others by decaying chance."""

    def __init__(self, choices: Choices, seed: int) -> None:
        super().__init__(choices, seed)
        self._options = [(n, v) for n, values in self.choices.items() for v in values[1:]]
        self._rows: list[Flags] = []
        self._costs: list[float] = []
        self._known: set[bytes] = set()

    @override
    def tell(self, told: Told) -> None:
        row = self._flags(told.values)
        self._rows.append(row)
        self._costs.append(told.cost)
        self._known.add(row.tobytes())

    @override
    def ask(self) -> Values:
        if len(self._rows) <= STARTUP_TRIALS:
            return self.near_default()
        forest = RandomForestRegressor(
            TREES, random_state=int(self.generator.integers(2**31)), n_jobs=1
        )
        forest.fit(np.array(self._rows), self._costs)
        candidates = self._candidates(forest.feature_importances_)
        each = np.array([tree.predict(candidates) for tree in forest.estimators_])
        score = _expected_improvement(each.mean(axis=0), each.std(axis=0), min(self._costs))
        for index in np.argsort(-score):
            if candidates[index].tobytes() not in self._known:
                return self._values(candidates[index])
        return self.near_default()

    def _candidates(self, importances: Flags) -> Flags:
        """Every combination of the important options, with the others near the default."""
        important = np.argsort(-importances)[:IMPORTANT]
        late = max(0, len(self._rows) - OFFSET)
        sigma = -(SCALE**2) / (2 * math.log(DECAY))
        wanted = 1 + round(DRAWS * math.exp(-(late**2) / (2 * sigma)))
        combinations = np.array(list(itertools.product((0.0, 1.0), repeat=important.size)))
        draws = max(1, min(wanted, MOST_CANDIDATES // len(combinations)))
        candidates = self._near_default(draws * len(combinations))
        candidates[:, important] = np.repeat(combinations, draws, axis=0)
        return self._one_a_knob(candidates)

    def _near_default(self, count: int) -> Flags:
        flags = np.zeros((count, len(self._options)))
        picks = self.generator.integers(len(self._options), size=(count, STARTUP_FLIPS))
        flags[np.arange(count)[:, None], picks] = 1.0
        return flags

    def _one_a_knob(self, flags: Flags) -> Flags:
        """Of several values of one knob keep the last."""
        names = [name for name, _ in self._options]
        for first, name in enumerate(names):
            for later in range(first + 1, len(names)):
                if names[later] != name:
                    break
                flags[flags[:, later] > 0, first] = 0.0
        return flags

    def _flags(self, values: Values) -> Flags:
        return np.array([float(values[name] == value) for name, value in self._options])

    def _values(self, flags: Flags) -> Values:
        chosen = {
            name: value for (name, value), flag in zip(self._options, flags, strict=True) if flag
        }
        return {**self.default, **chosen}


def _expected_improvement(mean: Flags, spread: Flags, best: float) -> Flags:
    width = np.maximum(spread, 1e-9)
    z = (best - mean) / width
    return np.asarray(width * (z * stats.norm.cdf(z) + stats.norm.pdf(z)))
