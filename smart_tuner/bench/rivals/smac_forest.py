"""SMAC3: Bayesian optimisation with a random forest.

As its facade for hyperparameter optimisation sets it up, with one change: the first routes are the
default and twenty near it, instead of a Sobol sequence over the whole space, nine tenths of which
would break here.
"""

from __future__ import annotations

import math
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import TYPE_CHECKING

from ConfigSpace import Categorical, Configuration, ConfigurationSpace
from smac import HyperparameterOptimizationFacade, Scenario
from smac.runhistory import StatusType, TrialInfo, TrialValue
from typing_extensions import override

from smart_tuner.bench.rivals.history import STARTUP_TRIALS, AskTellSampler, unchanging

if TYPE_CHECKING:
    from smart_tuner.bench.rivals.history import Choices, Told, Values

MOST_TRIALS = 100_000


class SmacSampler(AskTellSampler):
    """SMAC3 behind Optuna's interface; costs are latencies over the default's, failures crashes."""

    def __init__(self, choices: Choices, seed: int) -> None:
        super().__init__(choices, seed)
        self._names = {f"k{index}": name for index, name in enumerate(self.choices)}
        self._space = ConfigurationSpace(seed=seed % 2**32)
        self._space.add(
            Categorical(key, [*map(str, range(len(self.choices[name])))], default="0")
            for key, name in self._names.items()
        )
        folder = Path(tempfile.mkdtemp(prefix="smart-tuner-smac-"))  # it insists on one
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        scenario = Scenario(
            self._space,
            deterministic=True,
            n_trials=MOST_TRIALS,
            seed=seed % 2**31,
            output_directory=folder,
        )
        starts = [self._configuration(self.near_default()) for _ in range(STARTUP_TRIALS)]
        facade = HyperparameterOptimizationFacade
        design = facade.get_initial_design(scenario, n_configs=0, additional_configs=starts)
        with unchanging():
            self._smac = facade(
                scenario,
                _never_called,
                initial_design=design,
                logging_level=False,
                overwrite=True,
            )

    @override
    def tell(self, told: Told) -> None:
        status = StatusType.SUCCESS if told.is_feasible else StatusType.CRASHED
        info = TrialInfo(self._configuration(told.values), seed=0)
        with unchanging():
            self._smac.tell(info, TrialValue(cost=math.exp(told.cost), status=status), save=False)

    @override
    def ask(self) -> Values:
        with unchanging():
            configuration = self._smac.ask().config
        return {
            name: self.choices[name][int(configuration[key])] for key, name in self._names.items()
        }

    def _configuration(self, values: Values) -> Configuration:
        indices = {
            key: str(self.choices[name].index(values[name])) for key, name in self._names.items()
        }
        return Configuration(self._space, values=indices)


def _never_called(config: Configuration, seed: int = 0) -> float:
    raise NotImplementedError
