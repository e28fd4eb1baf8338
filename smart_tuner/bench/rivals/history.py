"""What samplers of other packages are told of a study: routes with a cost, failures included.

These packages know no constraints, so all of them get the same penalty: a route that failed or
broke epsilon counts as 3 % slower than the default. That is little, since effects are little too:
of twice the default's latency the forests learned nothing but failures (share of the attainable
gain on six tuning workloads, BOCA after 90 trials: 0.24 at twice, 0.25 at a tenth, 0.34 at 3 %;
SMAC3 on four after 60: 0.40 at twice, 0.39 at 3 %).
"""

from __future__ import annotations

import contextlib
import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from optuna.distributions import CategoricalDistribution
from optuna.exceptions import ExperimentalWarning
from optuna.samplers import BaseSampler, RandomSampler
from optuna.trial import TrialState
from typing_extensions import override

from smart_tuner.storages.keys import MEASURED, UNCHANGED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import optuna
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

    Choices = Mapping[str, tuple[str, ...]]
    Values = dict[str, str]

FAILURE_COST = 0.03
"""Log latency over the default's."""

STARTUP_TRIALS = 20
STARTUP_FLIPS = 3
_ENDED = (TrialState.COMPLETE, TrialState.PRUNED)


@contextlib.contextmanager
def unchanging() -> Iterator[None]:
    """Silence what a package says about its own future: here it is used as it is today."""
    with warnings.catch_warnings():
        for kind in (DeprecationWarning, FutureWarning, ExperimentalWarning):
            warnings.simplefilter("ignore", kind)
        yield


@dataclass(frozen=True, slots=True)
class Told:
    """One finished trial.

    Attributes:
        number: Trial number.
        values: Value by knob name.
        cost: ln(latency / latency of the first trial), or ``FAILURE_COST``.
        is_feasible: Ran within every constraint.
        measured: ln(latency / latency of the first trial), over epsilon or not; ``None`` if the
            route did not run.
    """

    number: int
    values: Values
    cost: float
    is_feasible: bool
    measured: float | None = None


def near_default(
    choices: Choices, generator: np.random.Generator, flips: int = STARTUP_FLIPS
) -> Values:
    """The default route with a few knobs, drawn at random, at another value.

    Args:
        choices: Choices by knob name, the default first, at least two each.
        generator: Source of the draw.
        flips: How many knobs.
    """
    route = {name: values[0] for name, values in choices.items()}
    for name in generator.permutation(list(route))[:flips].tolist():
        route[name] = str(generator.choice(choices[name][1:]))
    return route


class AskTellSampler(BaseSampler):
    """Base of rivals that keep a state of their own: told each trial once, asked for the next.

    Unlike ours they cannot be restarted, which a comparison does not need.

    Attributes:
        choices: Choices by knob name, the default first; knobs with one choice left out.
    """

    def __init__(self, choices: Choices, seed: int) -> None:
        self.choices = {name: values for name, values in choices.items() if len(values) > 1}
        self.generator = np.random.default_rng(seed)
        self._told = 0

    def tell(self, told: Told) -> None:
        """Take in a finished trial."""
        raise NotImplementedError

    def ask(self) -> Values:
        """Propose a value for each knob."""
        raise NotImplementedError

    @property
    def default(self) -> Values:
        """The default route."""
        return {name: values[0] for name, values in self.choices.items()}

    def near_default(self, flips: int = STARTUP_FLIPS) -> Values:
        """The default route with a few knobs, drawn at random, at another value."""
        return near_default(self.choices, self.generator, flips)

    @override
    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        return {name: CategoricalDistribution(values) for name, values in self.choices.items()}

    @override
    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        for told in _history(study)[self._told :]:
            self.tell(told)
            self._told += 1
        return dict(self.ask())

    @override
    def sample_independent(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        return RandomSampler(seed=trial.number).sample_independent(
            study, trial, param_name, param_distribution
        )


def _history(study: optuna.Study) -> list[Told]:
    trials = study.get_trials(deepcopy=False, states=_ENDED)
    base = next((trial.value for trial in trials if trial.value), 1.0)
    return [_told(trial, base) for trial in trials]


def _told(trial: FrozenTrial, base_ms: float) -> Told:
    is_feasible = trial.state is TrialState.COMPLETE and not any(
        value > 0 for value in trial.constraints.values()
    )
    is_known = trial.user_attrs.get(MEASURED, True) or trial.user_attrs.get(UNCHANGED, False)
    measured = math.log(trial.value / base_ms) if trial.value and is_known else None
    cost = FAILURE_COST if measured is None or not is_feasible else measured
    return Told(trial.number, dict(trial.params), cost, is_feasible, measured)
