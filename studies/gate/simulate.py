"""How often does the gate miss a slow-down of 10 %, and how often does it cry wolf?

400 simulated comparisons for each condition and kind of comparison. Side by side, everything but
the latencies is the product's: blocks, pairs, warm-up and estimate of `measure.compare`, the two
looks of `gate.measure`, the rule of `gate.judge`; the other two comparisons are drawn round by
round, or run by run. An arm's latency is what a runtime showed here:

* each process has a luck of its own (threads and memory are placed anew), normal in log space;
* each block has noise, one in twenty a spike of up to 60 %;
* the machine drifts through all of it, both arms alike;
* each run of the gate has a luck of its own on top, for the comparisons with earlier runs.

    python studies/gate/simulate.py > studies/gate/simulated.md
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from smart_tuner.gate.judge import (
    ROUNDS,
    TOLERANCE,
    Slowdown,
    against_runs,
    between_artefacts,
    over_default,
)
from smart_tuner.gate.measure import Round, in_two_looks
from smart_tuner.gate.run import PAIRS
from smart_tuner.measure.compare import compare
from smart_tuner.measure.stop_rule import StopRule

REPEATS = 400
SLOWER = 1.10
LATENCY_MS = 5.0


@dataclass(frozen=True)
class Noise:
    """Standard deviations in log space: of a process, of a block, of a run of the gate."""

    process: float
    block: float
    run: float = 0.0


class Machine:
    """A clock that only measurements move, and the slow drift of what they measure."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.seconds = 0.0
        self.phase = rng.uniform(0, 2 * math.pi)

    def clock(self) -> float:
        return self.seconds

    def drift(self) -> float:
        return 0.03 * math.sin(self.phase + self.seconds / 20)


class Arm:
    """One process with one engine."""

    def __init__(self, machine: Machine, noise: Noise, log_ms: float) -> None:
        self.machine, self.noise = machine, noise
        self.log_ms = log_ms + noise.process * machine.rng.standard_normal()

    def time_block(self, iterations: int) -> tuple[float, ...]:
        rng = self.machine.rng
        log_ms = self.log_ms + self.machine.drift() + self.noise.block * rng.standard_normal()
        if rng.random() < 0.05:
            log_ms += rng.uniform(0, 0.5)
        samples = np.exp(log_ms + 0.01 * rng.standard_normal(iterations))
        self.machine.seconds += float(samples.sum()) / 1000
        return tuple(samples)


def rounds(
    machine: Machine, noise: Noise, slower: float, settled: Callable[[list[Round]], bool]
) -> tuple[Round, ...]:
    """What the gate measures in one run; `slower` is candidate over what it is compared with."""
    luck = noise.run * machine.rng.standard_normal()

    def measure(number: int) -> Round:
        logs = [math.log(LATENCY_MS), math.log(LATENCY_MS * slower) + luck]
        turned = number % 2 == 1
        arms = [Arm(machine, noise, log_ms) for log_ms in (logs[::-1] if turned else logs)]
        rule = StopRule.fixed(PAIRS)
        found = compare(arms[0], arms[1], "p", rule, clock=machine.clock)
        figures = (found.baseline.median_ms, found.candidate.median_ms)
        if turned:
            return Round(-found.log_ratio, figures[1], figures[0])
        return Round(found.log_ratio, *figures)

    return in_two_looks(measure, ROUNDS, settled)


def ratios(measured: tuple[Round, ...] | list[Round]) -> list[float]:
    return [round_.log_ratio for round_ in measured]


def side_by_side(rng: np.random.Generator, noise: Noise, slower: float) -> Slowdown:
    def settled(measured: list[Round]) -> bool:
        return between_artefacts(ratios(measured)).is_settled(TOLERANCE)

    return between_artefacts(ratios(rounds(Machine(rng), noise, slower, settled)))


def same_engine(earlier: int) -> Callable[[np.random.Generator, Noise, float], Slowdown]:
    """Rounds by their log ratios: two processes each, and the luck of the run on all of them."""

    def run(rng: np.random.Generator, noise: Noise, slower: float) -> Slowdown:
        def drawn(count: int, factor: float, luck: float) -> list[float]:
            spread = math.sqrt(2) * noise.process
            return list(math.log(factor) + luck + spread * rng.standard_normal(count))

        before = [drawn(ROUNDS, 0.8, noise.run * rng.standard_normal()) for _ in range(earlier)]
        luck = noise.run * rng.standard_normal()
        now = drawn(ROUNDS, 0.8 * slower, luck)
        if not over_default(before, now).is_settled(TOLERANCE):
            now += drawn(ROUNDS, 0.8 * slower, luck)
        return over_default(before, now)

    return run


def latency(earlier: int) -> Callable[[np.random.Generator, Noise, float], Slowdown]:
    """Whole runs by their medians: process and block noise are nothing beside the run's."""

    def run(rng: np.random.Generator, noise: Noise, slower: float) -> Slowdown:
        spread = math.hypot(noise.run, noise.process / math.sqrt(ROUNDS))
        before = LATENCY_MS * np.exp(spread * rng.standard_normal(earlier))
        now = LATENCY_MS * slower * math.exp(spread * rng.standard_normal())
        return against_runs(before.tolist(), now)

    return run


def answers(
    kind: Callable[[np.random.Generator, Noise, float], Slowdown],
    noise: Noise,
    slower: float,
    seed: int,
) -> Counter[str]:
    found: Counter[str] = Counter()
    for repeat in range(REPEATS):
        slowdown = kind(np.random.default_rng((seed, repeat)), noise, slower)
        if slowdown.is_regression(TOLERANCE):
            found["slower"] += 1
        else:
            is_settled = slowdown.is_settled(TOLERANCE)
            found["passed" if is_settled else "unclear"] += 1
            # Only where it is unclear does the gate say that it cannot tell 10 % at this noise.
            found["said so"] += not is_settled and slowdown.misses_large(TOLERANCE)
    return found


def conditions() -> Iterator[tuple[str, Callable[..., Slowdown], Noise]]:
    for process in (0.005, 0.02, 0.04):
        name = f"side by side; process {100 * process:g} %"
        yield name, side_by_side, Noise(process, 2 * process)
    for earlier, run in ((1, 0.005), (1, 0.01), (4, 0.01), (8, 0.01)):
        name = f"same engine over its default, {earlier} earlier; process 2 %, run {100 * run:g} %"
        yield name, same_engine(earlier), Noise(0.02, 0.02, run)
    for earlier, run in ((4, 0.01), (6, 0.01), (6, 0.02), (8, 0.02), (16, 0.02), (16, 0.03)):
        name = f"latency, {earlier} earlier; run {100 * run:g} %"
        yield name, latency(earlier), Noise(0.02, 0.02, run)


def main() -> None:
    print(f"{REPEATS} comparisons each, {ROUNDS} rounds a look, tolerance {100 * TOLERANCE:g} %.\n")
    print("| comparison; noise | false alarms | of the others unclear | missed 10 % | of that without saying so |")
    print("| --- | --- | --- | --- | --- |")
    for seed, (name, kind, noise) in enumerate(conditions()):
        same = answers(kind, noise, 1.0, seed)
        slower = answers(kind, noise, SLOWER, 1000 + seed)
        missed = REPEATS - slower["slower"]
        shares = (same["slower"], same["unclear"], missed, missed - slower["said so"])
        cells = " | ".join(f"{100 * share / REPEATS:.2f} %" for share in shares)
        print(f"| {name} | {cells} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
