"""Two engines side by side, each round in two fresh processes."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from smart_tuner.errors import TrialError
from smart_tuner.measure.statistics import combine
from smart_tuner.study.events import Note
from smart_tuner.trial.arm import PointArm, RemoteArm, timed_pair
from smart_tuner.trial.baseline import validate_all
from smart_tuner.trial.verdict import describe_losses
from smart_tuner.trial.watch import Watch, measuring_lock

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from smart_tuner.engine.build import BuildRequest, Engine
    from smart_tuner.engine.platform import Platform
    from smart_tuner.measure.latency import Comparison
    from smart_tuner.measure.stop_rule import StopRule
    from smart_tuner.model.workload import Workload
    from smart_tuner.study.events import Listener
    from smart_tuner.trial.options import EvaluatorOptions


class CannotCompare(TrialError):  # noqa: N818 - as the outcomes in ``errors``
    """What was stored does not load or run here any more; no fault of the candidate."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two engines.

    Attributes:
        name: What people call it.
        request: What it is built from.
        engine: The file to load; ``None`` to build it, where an engine is the model with settings.
        options: How its processes are started.
    """

    name: str
    request: BuildRequest
    engine: Engine | None
    options: EvaluatorOptions


@dataclass(frozen=True, slots=True)
class Round:
    """One measurement of both engines.

    Attributes:
        log_ratio: ln(candidate / before), the weighted mean over the points.
        before_ms: Latency of the engine before, likewise.
        candidate_ms: Latency of the candidate.
    """

    log_ratio: float
    before_ms: float
    candidate_ms: float


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Measures two engines on one workload.

    Attributes:
        workload: Points, inputs and trusted outputs.
        platform: Names the device.
        rule: The sample size of a round.
        folder: For logs and builds.
        listener: Hears each round.
    """

    workload: Workload
    platform: Platform
    rule: StopRule
    folder: Path
    listener: Listener

    def rounds(
        self,
        before: Side,
        candidate: Side,
        count: int,
        settled: Callable[[Sequence[Round]], bool],
    ) -> tuple[Round, ...]:
        """Measure ``count`` rounds, and as many again if the first leave it open.

        Args:
            before: What the candidate is compared with.
            candidate: What would ship.
            count: Rounds, at least two.
            settled: Whether the rounds so far are enough.

        Raises:
            CannotCompare: The engine before does not load or run.
            TrialError: The candidate does not.
        """
        measured: list[Round] = []
        for number in range(2 * count):
            if number == count and settled(measured):
                break
            measured.append(self._round(before, candidate, number))
            ratio = math.exp(measured[-1].log_ratio)
            text = f"round {number + 1}: {candidate.name} takes {ratio:.3f} of {before.name}"
            self.listener(Note(text))
        return tuple(measured)

    def _round(self, before: Side, candidate: Side, number: int) -> Round:
        """The order of the two changes from round to round: being first may help or harm."""
        place = self.folder / f"round-{number}"
        place.mkdir(parents=True, exist_ok=True)
        logs = [place / f"{name}.log" for name in ("before", "candidate")]
        with (
            RemoteArm(before.options, logs[0]) as old,
            RemoteArm(candidate.options, logs[1]) as new,
        ):
            try:
                open_side(old, before, place / "before")
            except TrialError as error:
                msg = f"{before.name} does not load here any more: {error}"
                raise CannotCompare(msg) from error
            open_side(new, candidate, place / "candidate")
            with measuring_lock(self.platform, before.options.on_wait):
                turned = bool(number % 2)
                pair = (new, old) if turned else (old, new)
                return self._measured(pair, turned=turned)

    def _measured(self, pair: tuple[RemoteArm, RemoteArm], *, turned: bool) -> Round:
        watch = Watch(self.platform)
        weights = {point.name: point.weight for point in self.workload.points}
        comparisons = []
        for point in self.workload.points:
            inputs = timed_pair(point).inputs
            old, new = (pair[1], pair[0]) if turned else pair
            arms = (_Before(PointArm(old, inputs)), PointArm(new, inputs))
            comparisons.append(
                watch.compare(arms[::-1] if turned else arms, point.name, self.rule)
            )
        log_ratio, _ = combine(comparisons, weights)
        figures = [
            _mean_ms(comparisons, weights, candidate=which) for which in (turned, not turned)
        ]
        return Round(-log_ratio if turned else log_ratio, *figures)

    def broken_epsilon(self, side: Side) -> str:
        """Why an engine is not accurate enough; empty if it is.

        Raises:
            TrialError: It does not load or run.
        """
        place = self.folder / "accuracy"
        place.mkdir(parents=True, exist_ok=True)
        with RemoteArm(side.options, place / "child.log") as arm:
            open_side(arm, side, place / "engine")
            losses = validate_all(arm, self.workload, side.options.constraint)
            return describe_losses(losses)


@dataclass(frozen=True, slots=True)
class _Before:
    """The engine before on one point, whose failures are told apart from the candidate's."""

    arm: PointArm

    def time_block(self, iterations: int) -> tuple[float, ...]:
        """Time a block and return milliseconds.

        Raises:
            CannotCompare: It did not run.
        """
        try:
            return self.arm.time_block(iterations)
        except TrialError as error:
            msg = f"What was stored does not run here any more: {error}"
            raise CannotCompare(msg) from error


def open_side(arm: RemoteArm, side: Side, workdir: Path) -> None:
    """Load a side's engine in a process, built first where there is no file to load."""
    engine = side.engine
    if engine is None:
        workdir.mkdir(parents=True, exist_ok=True)
        engine = arm.build(side.request, workdir)
    arm.load(engine)


def with_python(options: EvaluatorOptions, python: str) -> EvaluatorOptions:
    """The same options, their processes started by another interpreter."""
    return replace(options, python=python)


def median_ms(rounds: Sequence[Round]) -> float:
    """The candidate's latency over some rounds."""
    return statistics.median(round_.candidate_ms for round_ in rounds)


def _mean_ms(
    comparisons: Sequence[Comparison], weights: dict[str, float], *, candidate: bool
) -> float:
    """Weighted geometric mean of an arm's medians over the points."""
    total = sum(weights.values())
    logs = (
        weights[item.point] * math.log((item.candidate if candidate else item.baseline).median_ms)
        for item in comparisons
    )
    return math.exp(sum(logs) / total)
