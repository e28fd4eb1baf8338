from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest

from smart_tuner.errors import RunError
from smart_tuner.measure.compare import compare
from smart_tuner.measure.latency import Statistic
from smart_tuner.measure.stop_rule import StopRule

if TYPE_CHECKING:
    from collections.abc import Callable


class Machine:
    """A pretend machine: one clock, a slowness that may change, noise with spikes."""

    def __init__(
        self,
        seed: int = 0,
        *,
        noise: float = 0.0,
        slowness: Callable[[float], float] = lambda _: 1.0,
    ) -> None:
        self.random = np.random.default_rng(seed)
        self.noise, self.slowness = noise, slowness
        self.now = 0.0
        self.order = ""

    def clock(self) -> float:
        return self.now

    def arm(
        self, name: str, base_ms: float, *, cold: float = 1.0, spikes: float = 0.0
    ) -> PretendArm:
        return PretendArm(self, name, base_ms, cold=cold, spikes=spikes)


class PretendArm:
    def __init__(
        self, machine: Machine, name: str, base_ms: float, *, cold: float, spikes: float
    ) -> None:
        self.machine, self.name, self.base_ms = machine, name, base_ms
        self.cold, self.spikes = cold, spikes

    def time_block(self, iterations: int) -> list[float]:
        machine = self.machine
        machine.order += self.name
        random = machine.random
        # One factor for a block and one for each iteration: neighbours share the moment.
        factors = 1 + machine.noise * np.abs(random.standard_normal(iterations))
        factors *= math.exp(machine.noise * random.standard_normal())
        factors[random.random(iterations) < self.spikes] *= 35
        factors[0] *= self.cold
        samples = (self.base_ms * machine.slowness(machine.now) * factors).tolist()
        machine.now += sum(samples) / 1000
        return [float(sample) for sample in samples]


def test_blocks_alternate_in_abba_order_after_the_warm_up() -> None:
    machine = Machine()
    compare(machine.arm("b", 1.0), machine.arm("c", 0.8), "p", StopRule(), clock=machine.clock)
    assert machine.order.endswith("bccb" * 4)


def test_quiet_machine_gives_the_exact_gain_and_stops_early() -> None:
    machine = Machine()
    result = compare(
        machine.arm("b", 1.0), machine.arm("c", 0.8), "p", StopRule(), clock=machine.clock
    )
    assert result.point == "p"
    assert result.gain == pytest.approx(1.25)
    assert len(result.log_ratios) == 8
    assert result.half_width == pytest.approx(0.0, abs=1e-12)
    assert result.baseline.median_ms == pytest.approx(1.0)
    assert result.candidate.median_ms == pytest.approx(0.8)
    assert result.baseline.count == 8 * 40
    assert result.seconds == pytest.approx(machine.now)
    assert result.notes == ()


def test_the_interval_covers_the_truth_with_noise_and_spikes() -> None:
    truth, covered, cases = math.log(0.97), 0, 150
    rule = StopRule.fixed(12)
    for seed in range(cases):
        machine = Machine(seed, noise=0.02)
        baseline = machine.arm("b", 2.0, spikes=0.01)
        candidate = machine.arm("c", 2.0 * 0.97, spikes=0.01)
        result = compare(baseline, candidate, "p", rule, clock=machine.clock)
        covered += abs(result.log_ratio - truth) <= result.half_width
    assert 0.90 <= covered / cases <= 0.99


def test_linear_drift_cancels_and_is_reported() -> None:
    machine = Machine(slowness=lambda now: 1 + 0.2 * now)
    result = compare(
        machine.arm("b", 1.0), machine.arm("c", 0.9), "p", StopRule.fixed(20), clock=machine.clock
    )
    assert result.log_ratio == pytest.approx(math.log(0.9), abs=5e-4)
    assert any("Drift" in note for note in result.notes)


def test_cold_first_iterations_of_a_block_do_not_count() -> None:
    machine = Machine()
    cold = machine.arm("c", 1.0, cold=40.0)
    result = compare(
        machine.arm("b", 1.0), cold, "p", StopRule(min_iterations=1), clock=machine.clock
    )
    assert result.log_ratio == pytest.approx(0.0)
    assert result.candidate.p99_ms == pytest.approx(1.0)


def test_a_hopeless_candidate_costs_four_pairs() -> None:
    machine = Machine(noise=0.01)
    baseline, candidate = machine.arm("b", 10.0), machine.arm("c", 700.0)
    result = compare(baseline, candidate, "p", StopRule(), clock=machine.clock)
    assert len(result.log_ratios) == 4
    assert result.gain == pytest.approx(1 / 70, rel=0.05)
    assert result.candidate.count == 4


def test_a_slow_model_still_gets_an_interval() -> None:
    machine = Machine(noise=0.01)
    result = compare(
        machine.arm("b", 3_000.0), machine.arm("c", 2_900.0), "p", StopRule(), clock=machine.clock
    )
    assert len(result.log_ratios) == 4
    assert math.isfinite(result.half_width)


def test_microseconds_are_neither_zero_nor_a_division_by_it() -> None:
    machine = Machine(noise=0.001)
    rule = StopRule(block_seconds=0.001)
    result = compare(
        machine.arm("b", 0.0008), machine.arm("c", 0.0004), "p", rule, clock=machine.clock
    )
    assert result.gain == pytest.approx(2.0, rel=0.01)
    assert result.candidate.median_ms == pytest.approx(0.0004, rel=0.01)


def test_an_unstable_machine_is_reported() -> None:
    machine = Machine(slowness=lambda now: math.exp(2 * min(now, 5)))
    result = compare(
        machine.arm("b", 1.0), machine.arm("c", 1.0), "p", StopRule(), clock=machine.clock
    )
    assert any("still changing" in note for note in result.notes)


class BrokenArm:
    def time_block(self, iterations: int) -> tuple[float, ...]:
        return (math.nan,) * iterations


def test_an_impossible_latency_of_either_arm_is_a_run_error() -> None:
    machine = Machine()
    good = machine.arm("b", 1.0)
    with pytest.raises(RunError, match="nan ms"):
        compare(good, BrokenArm(), "p", StopRule(), clock=machine.clock)
    with pytest.raises(RunError, match="nan ms"):
        compare(BrokenArm(), good, "p", StopRule(), clock=machine.clock)


class BracketArm:
    """Times several inferences as one: fewer samples than asked."""

    def time_block(self, iterations: int) -> tuple[float, ...]:
        return (0.5,)


def test_one_sample_a_block_is_enough() -> None:
    result = compare(BracketArm(), BracketArm(), "p", StopRule.fixed(4))
    assert result.log_ratio == 0.0
    assert result.baseline.count == 4


def test_mean_sees_the_spikes_that_the_median_ignores() -> None:
    gains = {}
    for statistic in (Statistic.MEDIAN, Statistic.MEAN):
        machine = Machine(noise=0.001)
        spiky = machine.arm("c", 1.0, spikes=0.1)
        rule = StopRule.fixed(40, statistic=statistic)
        result = compare(machine.arm("b", 1.0), spiky, "p", rule, clock=machine.clock)
        gains[statistic] = result.gain
    assert gains[Statistic.MEDIAN] == pytest.approx(1.0, abs=0.01)
    assert gains[Statistic.MEAN] == pytest.approx(1 / 4.4, rel=0.2)


def test_tails_are_claimed_only_from_enough_slow_samples() -> None:
    machine = Machine(noise=0.01)
    arms = [machine.arm(name, 1.0, spikes=0.05) for name in "bc"]
    rule = StopRule.fixed(8, statistic=Statistic.P99)
    enough = compare(arms[0], arms[1], "p", rule, clock=machine.clock)
    assert enough.baseline.count >= 2000
    assert math.isfinite(enough.half_width)
    assert abs(enough.log_ratio) <= 2 * enough.half_width
    hurried = StopRule(statistic=Statistic.P99, max_seconds=0.5)
    few = compare(machine.arm("b", 1.0), machine.arm("c", 1.0), "p", hurried, clock=machine.clock)
    assert few.half_width == math.inf
    assert any("needs 2000" in note for note in few.notes)
    fast = compare(machine.arm("b", 0.1), machine.arm("c", 0.1), "p", rule, clock=machine.clock)
    assert fast.half_width == math.inf
    assert any("tails need 0.2 ms" in note for note in fast.notes)


def test_the_same_samples_give_the_same_result() -> None:
    def run() -> tuple[float, float]:
        machine = Machine(4, noise=0.02)
        rule = StopRule(statistic=Statistic.P90)
        result = compare(
            machine.arm("b", 1.0), machine.arm("c", 1.0), "p", rule, clock=machine.clock
        )
        return result.log_ratio, result.half_width

    assert run() == run()
