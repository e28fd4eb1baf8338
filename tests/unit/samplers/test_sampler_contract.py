from __future__ import annotations

from typing import TYPE_CHECKING

import optuna
import pytest
from optuna.testing.pytest_samplers import BasicSamplerTestCase, RelativeSamplerTestCase

from smart_tuner.samplers.evolution import EvolutionSampler
from smart_tuner.samplers.registry import make_sampler
from smart_tuner.samplers.sweep import FastSampler, MixedSampler
from smart_tuner.samplers.tpe import DefaultCentredTpeSampler
from smart_tuner.samplers.uniform import UniformSampler
from smart_tuner.testing.sampler_contract import MIDDLE, SamplerContract, defaults_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from smart_tuner.testing.sampler_contract import MakeSampler

optuna.logging.set_verbosity(optuna.logging.ERROR)


class TestDefault(SamplerContract):
    @pytest.fixture
    def make(self) -> MakeSampler:
        return lambda choices, defaults, seed: make_sampler("default", choices, defaults, seed)


class TestTpe(SamplerContract):
    @pytest.fixture
    def make(self) -> MakeSampler:
        return DefaultCentredTpeSampler


class TestEvolution(SamplerContract):
    @pytest.fixture
    def make(self) -> MakeSampler:
        return EvolutionSampler


class TestUniform(SamplerContract):
    @pytest.fixture
    def make(self) -> MakeSampler:
        return UniformSampler


class TestFast(SamplerContract):
    @pytest.fixture
    def make(self) -> MakeSampler:
        return FastSampler


class TestMixed(SamplerContract):
    @pytest.fixture
    def make(self) -> MakeSampler:
        return MixedSampler


class TestOptunaContract(BasicSamplerTestCase, RelativeSamplerTestCase):
    """What Optuna asks of any sampler, with parameters that are not in our space."""

    @pytest.fixture
    def sampler(self) -> Callable[[], optuna.samplers.BaseSampler]:
        return lambda: make_sampler("default", MIDDLE, defaults_of(MIDDLE), 0)
