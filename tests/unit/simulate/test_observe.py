from __future__ import annotations

import math

import numpy as np
import pytest

from smart_tuner.knobs.knob import Knob
from smart_tuner.simulate.compiler import SimulatedCompiler
from smart_tuner.simulate.effects import Failure, Noise, Observation, ValueEffect
from smart_tuner.trial.trial import TrialOutcome

FAILURES = tuple(Failure)
KNOB = Knob("k", ("default", *FAILURES, "fast", "lossy", "noop", "idle"), "default")
SIM = SimulatedCompiler(
    (KNOB,),
    base_latency_ms=4.0,
    effects=(
        *(ValueEffect("k", failure.value, failure=failure) for failure in FAILURES),
        ValueEffect("k", "fast", log_latency=-0.5),
        ValueEffect("k", "lossy", loss=2e-3),
        ValueEffect("k", "noop", noop=True),
    ),
    noise=Noise(build=0.01, measurement=0.01, spike_rate=0),
    build_seconds=20,
    timeout_seconds=99,
)


def observe(value: str, seed: int = 0) -> Observation:
    return SIM.observe({"k": value}, np.random.default_rng(seed))


@pytest.mark.parametrize("value", KNOB.choices)
def test_outcomes_are_trial_outcomes(value: str) -> None:
    assert TrialOutcome(observe(value).outcome)


@pytest.mark.parametrize("failure", [failure for failure in Failure if failure is not Failure.NAN])
def test_failures_show_neither_latency_nor_loss(failure: Failure) -> None:
    seen = observe(failure.value)
    assert (seen.latency_ms, seen.loss) == (None, None)
    assert seen.outcome == failure.outcome


def test_nan_is_infeasible_and_not_measured() -> None:
    seen = observe("nan")
    assert (seen.outcome, seen.loss, seen.latency_ms) == ("infeasible", math.inf, None)


def test_losses_above_epsilon_are_infeasible() -> None:
    assert observe("lossy").outcome == "infeasible"
    assert observe("fast").outcome == "feasible"


def test_an_unchanged_engine_is_known_without_noise() -> None:
    for value in ("default", "noop"):
        assert observe(value) == Observation("feasible", 4.0, 0.0, 20.0, unchanged=True)
    assert not observe("idle").unchanged


def test_a_hang_costs_the_time_limit() -> None:
    assert observe("hang").build_seconds == 99
    assert observe("abort").build_seconds < observe("fast").build_seconds == 20


def test_noise_is_that_of_build_and_measurement_together() -> None:
    logs = [math.log((observe("fast", seed).latency_ms or 0) / 4) for seed in range(600)]
    assert np.mean(logs) == pytest.approx(-0.5, abs=0.002)
    assert np.std(logs) == pytest.approx(math.hypot(0.01, 0.01), rel=0.12)


def test_every_outcome_takes_the_same_draws() -> None:
    ends = set()
    for value in KNOB.choices:
        rng = np.random.default_rng(5)
        SIM.observe({"k": value}, rng)
        ends.add(rng.random())
    assert len(ends) == 1
