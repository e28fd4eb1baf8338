from __future__ import annotations

import math
import zlib
from typing import TYPE_CHECKING

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution

from smart_tuner.samplers import RouteSampler
from smart_tuner.samplers.route_sampler.allowances import FULL, learn_allowances
from smart_tuner.samplers.route_sampler.keys import ACCURACY

if TYPE_CHECKING:
    import numpy.typing as npt

optuna.logging.set_verbosity(optuna.logging.ERROR)
LAYERS = [f"k{layer}" for layer in range(40)]


def history(power: float, seed: int = 0) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.float64]]:
    """Routes of 20 values, and shares of epsilon that add up in a power."""
    random = np.random.default_rng(seed)
    use = random.lognormal(0, 1, 20) / 40
    flags = np.vstack([np.zeros((1, 20), dtype=bool), random.random((60, 20)) < 0.3])
    return flags, (flags @ use) ** (1 / power)


@pytest.mark.parametrize("power", [1.0, 2.0])
def test_the_power_in_which_losses_add_up_is_found(power: float) -> None:
    flags, used = history(power)
    default = np.asarray(~flags.any(axis=1))
    learnt = learn_allowances(flags, {ACCURACY: np.log10(np.maximum(used, 1e-9))}, default)
    assert learnt.power.tolist() == [power]
    told = np.array([learnt.used(row)[0] for row in flags]) ** (1 / power)
    assert abs(told - used).max() < 0.05


def test_routes_are_filled_less_where_sums_are_not_to_be_trusted() -> None:
    flags, used = history(1.0)
    default = np.asarray(~flags.any(axis=1))
    sure = learn_allowances(flags, {ACCURACY: np.log10(np.maximum(used / 9, 1e-9))}, default)
    assert sure.limit.tolist() == [pytest.approx(FULL)]
    luck = np.where(np.arange(len(used)) % 3 == 2, 1.5, 0.5)
    unsure = learn_allowances(flags, {ACCURACY: np.log10(luck)}, default)
    assert unsure.limit[0] < 0.5


@pytest.mark.parametrize("power", [1.0, 0.4])
def test_few_routes_break_epsilon_where_losses_are_partly_luck(power: float) -> None:
    """As on a text recognizer, where most of 120 proposals were over before there was a margin."""
    random = np.random.default_rng(3)
    effect = -0.012 * random.exponential(1, len(LAYERS))
    use = random.lognormal(0, 1, len(LAYERS))
    space = {name: CategoricalDistribution(["keep", "int8"]) for name in LAYERS}
    study = optuna.create_study(sampler=RouteSampler(space, dict.fromkeys(space, "keep"), seed=3))
    over = []
    for _ in range(90):
        trial = study.ask()
        pick = [trial.suggest_categorical(k, d.choices) == "int8" for k, d in space.items()]
        lowered = np.array(pick)
        luck = np.random.default_rng(zlib.crc32(lowered.tobytes())).normal(0, 0.15)
        used = 1.4 * (use[lowered].sum() / use.sum()) ** power * math.exp(luck)
        trial.set_constraint(ACCURACY, math.log10(max(used, 1e-6)))
        study.tell(trial, 5 * math.exp(float(effect[lowered].sum())))
        over.append(used > 1)
    assert np.mean(over[30:]) < 0.2
    kept = [trial.value for trial in study.trials if trial.constraints[ACCURACY] <= 0]
    assert min(value for value in kept if value) < 5 * math.exp(0.35 * effect.sum())
