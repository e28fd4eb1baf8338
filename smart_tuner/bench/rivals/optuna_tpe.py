"""Optuna's TPE as a study would use it that has never heard of routes.

The default route is the first trial, as Optuna's documentation advises where a good setting is
known (``enqueue_trial``). Failures reach the sampler as constraint violations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from optuna.samplers import TPESampler
from typing_extensions import override

from smart_tuner.bench.rivals.history import STARTUP_TRIALS, near_default, unchanging

if TYPE_CHECKING:
    from collections.abc import Mapping

    import optuna
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

    Choices = Mapping[str, tuple[str, ...]]

PRIOR_WEIGHT = 0.2


def univariate(choices: Choices, seed: int) -> TPESampler:
    """One knob at a time, Optuna's default up to version 4."""
    del choices
    return _tpe(seed, multivariate=False)


def multivariate(choices: Choices, seed: int) -> TPESampler:
    """Whole routes, Optuna's default since version 5."""
    del choices
    return _tpe(seed, multivariate=True)


class CentredTpe(TPESampler):
    """Multivariate TPE that starts with routes near the default instead of uniform ones.

    Twenty routes of three flips, then TPE with a prior of a fifth of the usual weight, so that
    values which no good route had are rarely drawn: the strongest simple rival found so far.
    """

    def __init__(self, choices: Choices, seed: int) -> None:
        super().__init__(
            n_startup_trials=0, prior_weight=PRIOR_WEIGHT, multivariate=True, seed=seed
        )
        self._choices = {name: values for name, values in choices.items() if len(values) > 1}
        self._generator = np.random.default_rng(seed)

    @override
    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        if trial.number <= STARTUP_TRIALS:
            return dict(near_default(self._choices, self._generator))
        return super().sample_relative(study, trial, search_space)


def centred(choices: Choices, seed: int) -> CentredTpe:
    """Multivariate TPE around the default."""
    with unchanging():
        return CentredTpe(choices, seed)


def _tpe(seed: int, *, multivariate: bool) -> TPESampler:
    with unchanging():
        return TPESampler(multivariate=multivariate, seed=seed)
