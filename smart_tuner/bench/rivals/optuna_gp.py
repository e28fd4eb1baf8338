"""Optuna's Gaussian process, started around the default.

It fits one length scale a knob and searches the whole space for the best expected improvement: an
ask took half a minute at 30 knobs and a few trials past its start, so compare with it at ``--knobs
10``. Failed routes are invisible to it (Optuna gives it finished trials only); violations reach it
as constraints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch  # noqa: F401, Optuna imports it late and would not say what is missing
from optuna.samplers import GPSampler
from typing_extensions import override

from smart_tuner.bench.rivals.history import (
    STARTUP_TRIALS,
    near_default,
    unchanging,
)

if TYPE_CHECKING:
    import optuna
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

    from smart_tuner.bench.rivals.history import Choices


class CentredGp(GPSampler):
    """Twenty routes of three flips around the default, then the process."""

    def __init__(self, choices: Choices, seed: int) -> None:
        with unchanging():
            super().__init__(seed=seed, n_startup_trials=0, deterministic_objective=False)
        self._choices = {name: values for name, values in choices.items() if len(values) > 1}
        self._generator = np.random.default_rng(seed)

    @override
    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        if trial.number <= STARTUP_TRIALS:
            return dict(near_default(self._choices, self._generator))
        with unchanging():
            return super().sample_relative(study, trial, search_space)
