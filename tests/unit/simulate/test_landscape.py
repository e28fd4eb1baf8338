from __future__ import annotations

import math

import numpy as np
import pytest

from smart_tuner.errors import UserInputError
from smart_tuner.knobs.knob import Knob
from smart_tuner.simulate.compiler import SimulatedCompiler
from smart_tuner.simulate.effects import Failure, Gate, Noise, PairEffect, ValueEffect

KNOBS = (
    Knob("a", ("on", "off"), "on"),
    Knob("b", ("0", "1", "2"), "0"),
    Knob("c", ("on", "off"), "off"),
    Knob("c:d", ("on", "off"), "off"),
    Knob("c:d:e", ("on", "off"), "on"),
)
QUIET = Noise(build=0, measurement=0, spike_rate=0)


def compiler(**parts: object) -> SimulatedCompiler:
    fields: dict[str, object] = {
        "knobs": KNOBS,
        "base_latency_ms": 2.0,
        "noise": QUIET,
        "effects": (
            ValueEffect("a", "off", log_latency=-0.1, loss=4e-4),
            ValueEffect("b", "1", log_latency=0.2, loss=7e-4),
            ValueEffect("b", "2", noop=True),
            ValueEffect("c:d", "on", log_latency=-0.3),
            ValueEffect("c:d:e", "off", failure=Failure.HANG),
        ),
        "pairs": (PairEffect(("b", "1"), ("a", "off"), log_latency=-0.4),),
        "gates": (Gate("c:d", "c", "on"), Gate("c:d:e", "c:d", "off")),
    }
    return SimulatedCompiler(**(fields | parts))  # type: ignore[arg-type]


def test_effects_add_up_on_the_log_latency() -> None:
    sim = compiler()
    assert sim.latency_ms({}) == 2.0
    assert sim.latency_ms({"a": "off"}) == pytest.approx(2 * math.exp(-0.1))
    both = {"a": "off", "b": "1"}
    assert sim.latency_ms(both) == pytest.approx(2 * math.exp(-0.1 + 0.2 - 0.4))
    assert sim.latency_ms(dict(reversed(both.items()))) == pytest.approx(sim.latency_ms(both))


def test_defaults_may_be_spelt_out() -> None:
    sim = compiler()
    full = {knob.name: knob.default for knob in KNOBS}
    assert sim.latency_ms(full) == 2.0
    assert sim.settings_in_effect(full) == ()


def test_losses_add_up_and_pass_epsilon_together() -> None:
    sim = compiler()
    assert sim.is_feasible({"a": "off"})
    assert sim.is_feasible({"b": "1"})
    assert sim.loss({"a": "off", "b": "1"}) == pytest.approx(1.1e-3)
    assert not sim.is_feasible({"a": "off", "b": "1"})


def test_a_base_loss_is_always_there() -> None:
    sim = compiler(base_loss=2e-3)
    assert sim.loss({}) == 2e-3
    with pytest.raises(UserInputError, match="base_loss"):
        sim.optimum()


def test_no_ops_leave_the_engine_alone() -> None:
    sim = compiler()
    assert sim.is_noop("b", "2")
    assert sim.is_noop("b", "0")
    assert not sim.is_noop("b", "1")
    assert sim.settings_in_effect({"b": "2", "a": "off"}) == (("a", "off"),)


def test_children_act_while_their_gate_is_open() -> None:
    sim = compiler()
    assert sim.is_noop("c:d", "on")
    assert sim.latency_ms({"c:d": "on"}) == 2.0
    assert sim.latency_ms({"c": "on", "c:d": "on"}) == pytest.approx(2 * math.exp(-0.3))


def test_a_gate_is_shut_when_its_parents_gate_is() -> None:
    sim = compiler()
    assert sim.failure({"c:d:e": "off"}) is None
    assert sim.failure({"c": "on", "c:d:e": "off"}) is Failure.HANG
    assert sim.failure({"c": "on", "c:d": "on", "c:d:e": "off"}) is None


def test_the_first_failure_counts() -> None:
    sim = compiler(
        effects=(
            ValueEffect("a", "off", failure=Failure.NAN),
            ValueEffect("b", "1", failure=Failure.ABORT),
            ValueEffect("c", "on", failure=Failure.NOT_APPLIED),
        ),
        pairs=(PairEffect(("b", "2"), ("c:d", "on"), failure=Failure.BUILD_ERROR),),
        gates=(),
    )
    assert sim.loss({"a": "off"}) == math.inf
    assert sim.failure({"b": "1", "a": "off"}) is Failure.ABORT
    assert sim.failure({"b": "1", "c": "on"}) is Failure.NOT_APPLIED
    assert sim.failure({"b": "2"}) is None
    assert sim.failure({"b": "2", "c:d": "on"}) is Failure.BUILD_ERROR


@pytest.mark.parametrize(
    ("values", "named"),
    [({"nope": "1"}, "nope"), ({"b": "7"}, "b=7"), ({"b": "7", "a": "on"}, "b=7")],
)
def test_unknown_settings_are_named(values: dict[str, str], named: str) -> None:
    with pytest.raises(UserInputError, match=named):
        compiler().latency_ms(values)


@pytest.mark.parametrize(
    "parts",
    [
        {"knobs": ()},
        {"knobs": (KNOBS[0], KNOBS[0])},
        {"knobs": (Knob("a", (), "0", is_open=True),)},
        {"base_latency_ms": 0.0},
        {"epsilon": -1.0},
        {"noise": Noise(drift_period_seconds=0)},
        {"effects": (ValueEffect("nope", "1"),)},
        {"effects": (ValueEffect("a", "on", log_latency=1.0),)},
        {"effects": (ValueEffect("a", "off", loss=-1.0),)},
        {"effects": (ValueEffect("b", "2", log_latency=1.0, noop=True),)},
        {"effects": (ValueEffect("a", "off", loss=1.0), ValueEffect("a", "off", loss=2.0))},
        {"pairs": (PairEffect(("a", "off"), ("b", "9")),)},
        {"pairs": (PairEffect(("b", "1"), ("b", "2")),)},
        {"pairs": (PairEffect(("a", "off"), ("b", "2")),)},
        {"gates": (Gate("c", "c:d", "on"),)},
        {"gates": (Gate("a", "c", "on"),)},
        {"gates": (Gate("c:d", "c", "maybe"),)},
    ],
)
def test_parts_that_do_not_fit_are_refused(parts: dict[str, object]) -> None:
    with pytest.raises(UserInputError):
        compiler(**parts)


def test_samples_are_the_true_latency_without_noise() -> None:
    samples = compiler().sample({"a": "off"}, 1, 5, np.random.default_rng(0))
    np.testing.assert_allclose(samples, 2 * math.exp(-0.1))


def test_one_build_seed_is_one_engine() -> None:
    sim = compiler(noise=Noise(build=0.05, measurement=0, spike_rate=0))

    def engine(seed: int, values: dict[str, str]) -> float:
        return float(sim.sample(values, seed, 1, np.random.default_rng(0))[0])

    assert engine(1, {"a": "off"}) == engine(1, {"a": "off", "b": "2"})
    lucks = [
        math.log(engine(seed, {"a": "off"}) / sim.latency_ms({"a": "off"})) for seed in range(400)
    ]
    assert np.std(lucks) == pytest.approx(0.05, rel=0.15)
    assert np.mean(lucks) == pytest.approx(0, abs=0.01)


def test_spikes_and_drift_show_in_samples() -> None:
    spiky = compiler(noise=Noise(build=0, measurement=0, spike_rate=0.1, spike_size=0.5))
    samples = spiky.sample({}, 0, 4000, np.random.default_rng(0))
    assert np.mean(samples > 2.0) == pytest.approx(0.1, abs=0.02)
    drifting = compiler(noise=Noise(0, 0, 0, 0, drift=0.2, drift_period_seconds=100))
    late = drifting.sample({}, 0, 1, np.random.default_rng(0), elapsed_seconds=25)
    assert late[0] == pytest.approx(2 * math.exp(0.2), rel=1e-3)


def test_extreme_effects_stay_finite() -> None:
    sim = compiler(effects=(ValueEffect("a", "off", log_latency=1e6, log_build=1e6),), pairs=())
    assert math.isfinite(sim.latency_ms({"a": "off"}))
    assert math.isfinite(sim.route_build_seconds({"a": "off"}))
