import math
from collections.abc import Sequence

import pytest

from smart_tuner.measure.compare import compare
from smart_tuner.measure.goal import WINDOW_SECONDS, Goal
from smart_tuner.measure.latency import Statistic
from smart_tuner.measure.stop_rule import StopRule


class Machine:
    """Two arms on one clock; each run takes ``ms``, and ``group`` of them are timed as one."""

    def __init__(self, ms: float, group: int = 1) -> None:
        self.ms, self.group = ms, group
        self.now = 0.0
        self.blocks: list[float] = []

    def time_block(self, iterations: int) -> Sequence[float]:
        self.now += iterations * self.ms / 1000
        self.blocks.append(iterations * self.ms / 1000)
        return (self.ms,) * max(1, iterations // self.group)

    def clock(self) -> float:
        return self.now


def measured(machine: Machine, rule: StopRule) -> float:
    return compare(machine, machine, "p", rule, clock=machine.clock).half_width


@pytest.mark.parametrize("statistic", [Statistic.P90, Statistic.P95, Statistic.P99])
def test_a_tail_takes_the_samples_that_it_needs(statistic: Statistic) -> None:
    machine = Machine(20.0)
    rule = Goal(statistic).search_rule
    comparison = compare(machine, machine, "p", rule, clock=machine.clock)
    assert comparison.baseline.count >= statistic.least_samples
    assert math.isfinite(comparison.half_width)


def test_a_tail_is_not_claimed_where_runs_are_timed_in_groups() -> None:
    rule = Goal(Statistic.P99).search_rule
    machine = Machine(1.0, group=4)
    comparison = compare(machine, machine, "p", rule, clock=machine.clock)
    assert math.isinf(comparison.half_width)
    assert any("timed in groups" in note for note in comparison.notes)
    assert math.isfinite(measured(Machine(1.0, group=4), Goal().search_rule))


def test_throughput_is_measured_in_whole_windows() -> None:
    goal = Goal(objective="throughput")
    for rule in (goal.search_rule, goal.fixed(4)):
        machine = Machine(3.0)
        compare(machine, machine, "p", rule, clock=machine.clock)
        assert min(machine.blocks[-8:]) >= WINDOW_SECONDS


def test_words_and_identity_say_what_is_measured() -> None:
    assert Goal().words == "median end-to-end latency"
    assert Goal().identity == {}
    tail = Goal(Statistic.P99, "compute")
    assert tail.words == "p99 compute latency, copies left out"
    assert tail.identity == {"statistic": "p99"}
    assert "full throughput, windows of 2 s" in Goal(objective="throughput").words
