from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest

from smart_tuner.errors import UserInputError
from smart_tuner.knobs.read import bundled_database
from smart_tuner.simulate.effects import Noise
from smart_tuner.simulate.generators import generator_names, make_compiler

if TYPE_CHECKING:
    from smart_tuner.simulate.compiler import SimulatedCompiler

SEEDS = range(30)


def value_count(compiler: SimulatedCompiler) -> int:
    return sum(len(knob.choices) - 1 for knob in compiler.knobs)


def shares(name: str) -> tuple[float, float, float]:
    """Share of all values that help by over 1 %, hurt by over 1 %, break; over the seeds."""
    helping = hurting = breaking = values = 0
    for seed in SEEDS:
        compiler = make_compiler(name, seed=seed)
        values += value_count(compiler)
        for effect in compiler.effects:
            breaking += effect.failure is not None
            helping += effect.failure is None and effect.log_latency <= -0.01
            hurting += effect.failure is None and effect.log_latency >= 0.01
    return helping / values, hurting / values, breaking / values


@pytest.mark.parametrize("name", generator_names())
def test_a_seed_gives_one_compiler(name: str) -> None:
    assert make_compiler(name, seed=4, knob_count=40) == make_compiler(name, seed=4, knob_count=40)
    assert make_compiler(name, seed=4, knob_count=40) != make_compiler(name, seed=5, knob_count=40)


def test_sparse_shares_are_those_of_real_compilers() -> None:
    helping, hurting, breaking = shares("sparse")
    assert 0.025 < helping < 0.035
    assert 0.052 < hurting < 0.068
    assert 0.04 < breaking < 0.06


def test_sparse_effects_have_a_heavy_tail() -> None:
    sizes = [
        -effect.log_latency
        for seed in SEEDS
        for effect in make_compiler("sparse", seed=seed).effects
        if effect.log_latency <= -0.01
    ]
    assert np.median(sizes) < 0.02
    assert np.quantile(sizes, 0.95) > 0.06
    assert max(sizes) <= 0.25


def test_dense_has_many_small_effects_and_no_large_one() -> None:
    sizes = [
        abs(effect.log_latency)
        for seed in SEEDS
        for effect in make_compiler("dense", seed=seed).effects
    ]
    assert max(sizes) <= 0.0101
    values = sum(value_count(make_compiler("dense", seed=seed)) for seed in SEEDS)
    assert sum(size >= 0.001 for size in sizes) / values > 0.8


def test_half_of_the_idle_values_leave_the_engine_alone() -> None:
    noops = idle = 0
    for seed in SEEDS:
        compiler = make_compiler("null", seed=seed)
        noops += sum(effect.noop for effect in compiler.effects)
        idle += value_count(compiler)
    assert 0.46 < noops / idle < 0.54


def test_on_null_nothing_matters() -> None:
    compiler = make_compiler("null", seed=1)
    assert not compiler.pairs
    assert not compiler.gates
    assert all(effect.log_latency == effect.loss == 0 for effect in compiler.effects)
    assert all(effect.failure is None for effect in compiler.effects)
    assert compiler.attainable_gain() == 1


def test_pairs_hide_gains_behind_harm() -> None:
    deceptive = 0
    for seed in SEEDS:
        compiler = make_compiler("pairs", seed=seed)
        alone = {(effect.knob, effect.value): effect.log_latency for effect in compiler.effects}
        for pair in compiler.pairs:
            first, second = alone.get(pair.first, 0.0), alone.get(pair.second, 0.0)
            together = first + second + pair.log_latency
            deceptive += min(first, second) >= 0.01 and together <= -0.01
    assert deceptive / len(SEEDS) > 2


def test_gated_children_extend_their_parents_name() -> None:
    compiler = make_compiler("gated", seed=0, knob_count=40)
    assert len(compiler.gates) >= 20
    defaults = {knob.name: knob.default for knob in compiler.knobs}
    parents = {gate.parent: gate.opened_by == defaults[gate.parent] for gate in compiler.gates}
    assert all(gate.child.startswith(gate.parent + ":") for gate in compiler.gates)
    assert set(parents.values()) == {True, False}


def test_crashy_routes_crash_by_pairs() -> None:
    assert len(make_compiler("crashy", seed=0).pairs) > 400
    assert shares("crashy")[2] == pytest.approx(0.05, abs=0.015)


@pytest.mark.parametrize("name", sorted(set(generator_names()) - {"null"}))
def test_there_is_usually_something_to_gain(name: str) -> None:
    gains = [make_compiler(name, seed=seed).attainable_gain() for seed in range(8)]
    assert np.median(gains) > 1.05
    assert max(gains) < 5


def test_on_lossy_the_fastest_values_cost_more_than_there_is() -> None:
    over = 0
    for seed in range(8):
        compiler = make_compiler("lossy", seed=seed)
        effects = [effect for effect in compiler.effects if effect.log_latency <= -0.01]
        fastest = {effect.knob: effect.value for effect in effects}
        over += compiler.loss(fastest) > compiler.epsilon
    assert over >= 6


def test_noise_differs_by_generator() -> None:
    noises = {name: make_compiler(name, seed=1, knob_count=10).noise for name in generator_names()}
    assert noises["steady"].build == 0
    assert noises["unsteady"].build > 2 * noises["sparse"].build
    assert noises["drifting"].drift > 0
    assert noises["host"].measurement > 5 * noises["sparse"].measurement


def test_names_are_those_of_tensorrt() -> None:
    real = {knob.name: knob for knob in bundled_database()}
    compiler = make_compiler("sparse", seed=0)
    assert {knob.name for knob in compiler.knobs} == set(real)
    for knob in compiler.knobs:
        assert knob.default == real[knob.name].default
        assert not knob.is_open
        assert real[knob.name].is_open or knob.values == real[knob.name].values


@pytest.mark.parametrize("count", [1, 10, 208, 250])
def test_any_number_of_knobs(count: int) -> None:
    for name in generator_names():
        compiler = make_compiler(name, seed=1, knob_count=count)
        assert len(compiler.knobs) == count
        assert len({knob.name for knob in compiler.knobs}) == count
        assert all(len(knob.choices) >= 2 for knob in compiler.knobs)


def test_difficulty_zero_stands_in_nobodys_way() -> None:
    compiler = make_compiler("crashy", seed=2, difficulty=0)
    assert not compiler.pairs
    assert all(effect.failure is None and effect.loss == 0 for effect in compiler.effects)
    samples = compiler.sample({}, 1, 3, np.random.default_rng(0))
    np.testing.assert_array_equal(samples, compiler.base_latency_ms)


def test_difficulty_breaks_more_values() -> None:
    def broken(difficulty: float) -> int:
        parts = make_compiler("sparse", seed=2, difficulty=difficulty).effects
        return Counter(effect.failure is not None for effect in parts)[True]

    assert broken(0.2) < broken(1) < broken(3)


def test_noise_can_be_chosen() -> None:
    noise = Noise(build=0.05, drift=0.1)
    assert make_compiler("sparse", seed=0, knob_count=10, noise=noise).noise == noise


@pytest.mark.parametrize(
    "arguments",
    [
        {"name": "nope", "seed": 0},
        {"name": "sparse", "seed": -1},
        {"name": "sparse", "seed": 0, "knob_count": 0},
        {"name": "sparse", "seed": 0, "knob_count": 100_000},
        {"name": "sparse", "seed": 0, "difficulty": -0.1},
        {"name": "sparse", "seed": 0, "difficulty": float("nan")},
    ],
)
def test_wrong_use_is_one_clear_error(arguments: dict[str, object]) -> None:
    with pytest.raises(UserInputError) as caught:
        make_compiler(**arguments)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def test_interactions_of_hubs_meet_in_six_knobs() -> None:
    for seed in range(5):
        pairs = [pair for pair in make_compiler("hubs", seed=seed).pairs if pair.failure is None]
        assert len(pairs) > 6
        assert len({pair.first[0] for pair in pairs}) <= 6


def test_redundant_values_gain_together_what_the_better_gains_alone() -> None:
    compiler = make_compiler("redundant", seed=1)
    alone = {(effect.knob, effect.value): effect.log_latency for effect in compiler.effects}
    taken = [
        pair
        for pair in compiler.pairs
        if alone.get(pair.first, 0) <= -0.01 and alone.get(pair.second, 0) <= -0.01
    ]
    assert len(taken) > 5
    for pair in taken[:5]:
        both = np.log(compiler.latency_ms(dict((pair.first, pair.second))))
        expected = np.log(compiler.base_latency_ms) + min(alone[pair.first], alone[pair.second])
        assert both == pytest.approx(expected)
