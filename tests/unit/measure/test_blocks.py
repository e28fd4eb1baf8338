from __future__ import annotations

import math

import numpy as np
import pytest

from smart_tuner.errors import RunError
from smart_tuner.measure.blocks import plan_block, time_samples, warm_up
from smart_tuner.measure.latency import Statistic
from smart_tuner.measure.stop_rule import StopRule


class Arm:
    """Runs on a clock of its own: ``latency_ms(seconds)`` gives the latency at that moment."""

    def __init__(self, latency_ms: object) -> None:
        self.latency_ms = latency_ms
        self.now = 0.0
        self.asked: list[int] = []

    def clock(self) -> float:
        return self.now

    def time_block(self, iterations: int) -> list[float]:
        assert callable(self.latency_ms)
        self.asked.append(iterations)
        samples = []
        for _ in range(iterations):
            samples.append(float(self.latency_ms(self.now)))
            self.now += samples[-1] / 1000
        return samples


@pytest.mark.parametrize(
    "figure", [0.0, -1.0, math.nan, math.inf, -math.inf, np.float32("nan"), np.float32(0)]
)
def test_an_impossible_latency_is_named(figure: float) -> None:
    with pytest.raises(RunError, match=rf"latency of {float(figure)!r} ms in iteration 3 of 4"):
        time_samples(lambda _: [1.0, 1.0, figure, 1.0], 4)


def test_no_samples_are_an_error_and_numpy_floats_are_not() -> None:
    with pytest.raises(RunError, match="no latency"):
        time_samples(lambda _: [], 4)
    assert time_samples(lambda _: [float(np.float32(0.5))], 1).tolist() == [0.5]


@pytest.mark.parametrize(
    ("iteration_ms", "kept", "dropped"),
    [
        (0.001, 40_000, 1),
        (0.01, 4_000, 1),
        (1.0, 40, 1),
        (30.0, 3, 1),
        (41.0, 3, 0),
        (100.0, 3, 0),
        (200.0, 2, 0),
        (2_000.0, 1, 0),
        (1e-9, 1_000_000, 1),
    ],
)
def test_blocks_last_equally_long_and_fit_the_time(
    iteration_ms: float, kept: int, dropped: int
) -> None:
    plan = plan_block(iteration_ms, StopRule())
    assert (plan.kept, plan.dropped) == (kept, dropped)


def test_tails_get_the_samples_that_they_need() -> None:
    rule = StopRule(statistic=Statistic.P99, max_seconds=60)
    assert plan_block(2.0, rule).kept * rule.min_pairs >= 2000
    assert plan_block(2.0, StopRule.fixed(10, statistic=Statistic.P99)).kept == 200
    assert plan_block(2.0, StopRule()).kept == 20


def test_warm_up_waits_until_the_latency_is_stable() -> None:
    arm = Arm(lambda now: 1.0 + 4.0 * math.exp(-now / 0.2))
    warm = warm_up([arm.time_block], StopRule(), arm.clock)
    assert warm.is_stable
    assert arm.now > 0.4
    assert warm.iteration_ms[0] == pytest.approx(1.0, rel=0.5)


def test_a_stable_arm_is_warmed_up_by_time_not_by_one_call() -> None:
    arm = Arm(lambda _: 0.002)
    warm = warm_up([arm.time_block], StopRule(), arm.clock)
    assert 0.1 <= warm.seconds < 0.3
    assert warm.iteration_ms == (0.002,)


def test_an_arm_that_never_settles_ends_at_the_cap() -> None:
    arm = Arm(lambda now: math.exp(2 * now))
    warm = warm_up([arm.time_block], StopRule(), arm.clock)
    assert not warm.is_stable
    assert 2.0 <= warm.seconds < 30


def test_a_noisy_arm_is_not_waited_for() -> None:
    random = np.random.default_rng(2)
    arm = Arm(lambda _: random.choice([1.0, 1.5, 2.0]))
    warm = warm_up([arm.time_block], StopRule(block_seconds=0.005), arm.clock)
    assert warm.is_stable
    assert warm.seconds < 0.5


def test_a_cold_first_iteration_of_each_block_is_not_taken_for_the_latency() -> None:
    def time_block(iterations: int) -> list[float]:
        arm.time_block(iterations)
        return [40.0, *[1.0] * (iterations - 1)]

    arm = Arm(lambda _: 1.0)
    assert warm_up([time_block], StopRule(), arm.clock).iteration_ms == (1.0,)


def test_a_slow_arm_is_run_once_and_not_called_unstable() -> None:
    arm = Arm(lambda _: 5_000.0)
    warm = warm_up([arm.time_block], StopRule(), arm.clock)
    assert arm.asked == [1]
    assert warm.is_stable


def test_a_first_call_forty_times_slower_does_not_spoil_the_plan() -> None:
    arm = Arm(lambda now: 40.0 if now == 0 else 1.0)
    assert warm_up([arm.time_block], StopRule(), arm.clock).iteration_ms == (1.0,)
