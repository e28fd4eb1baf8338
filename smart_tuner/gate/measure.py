"""Two engines side by side, each round in two fresh processes."""

from __future__ import annotations

import math
import statistics
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from smart_tuner.errors import TrialError
from smart_tuner.measure.statistics import combine
from smart_tuner.study.progress.events import Note
from smart_tuner.trial.arm import PointArm, RemoteArm, timed_pair
from smart_tuner.trial.baseline import validate_all
from smart_tuner.trial.verdict import describe_losses
from smart_tuner.trial.watch import Watch, measuring_lock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from smart_tuner.engine.build import BuildRequest, Engine
    from smart_tuner.engine.platform import Platform
    from smart_tuner.measure.compare import TimedArm
    from smart_tuner.measure.latency import Comparison
    from smart_tuner.measure.stop_rule import StopRule
    from smart_tuner.model.workload import Workload
    from smart_tuner.study.progress.events import Listener
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
        notes: What disturbed it; both engines alike, so that the ratio hardly suffers.
    """

    log_ratio: float
    before_ms: float
    candidate_ms: float
    notes: tuple[str, ...] = ()


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
        """Measure rounds in two looks.

        Args:
            before: What the candidate is compared with.
            candidate: What would ship.
            count: Rounds, at least two.
            settled: Whether the rounds so far are enough.

        Raises:
            CannotCompare: The engine before does not load or run.
            TrialError: The candidate does not.
        """

        def measure(number: int) -> Round:
            found = self._round(before, candidate, number)
            ratio = math.exp(found.log_ratio)
            text = f"round {number + 1}: {candidate.name} takes {ratio:.3f} of {before.name}"
            self.listener(Note(text))
            return found

        return in_two_looks(measure, count, settled)

    def _round(self, before: Side, candidate: Side, number: int) -> Round:
        """Whose process starts first, and who is timed first, changes from round to round."""
        place = self.folder / f"round-{number}"
        place.mkdir(parents=True, exist_ok=True)
        turned = bool(number % 2)
        sides = (candidate, before) if turned else (before, candidate)
        names = ("candidate", "before") if turned else ("before", "candidate")
        with ExitStack() as stack:
            arms = []
            for side, name in zip(sides, names, strict=True):
                arm = stack.enter_context(RemoteArm(side.options, place / f"{name}.log"))
                with _fault_of(side, before):
                    open_side(arm, side, place / name)
                arms.append(arm)
            stack.enter_context(measuring_lock(self.platform, before.options.on_wait))
            watch = Watch(self.platform, on_wait=before.options.on_wait)
            return self._measured((arms[0], arms[1]), watch, turned=turned)

    def _measured(self, arms: tuple[RemoteArm, RemoteArm], watch: Watch, *, turned: bool) -> Round:
        weights = {point.name: point.weight for point in self.workload.points}
        comparisons = []
        for point in self.workload.points:
            inputs = timed_pair(point).inputs
            timed: list[TimedArm] = [PointArm(arm, inputs) for arm in arms]
            timed[turned] = _Before(PointArm(arms[turned], inputs))
            comparisons.append(watch.compare((timed[0], timed[1]), point.name, self.rule))
        log_ratio, _ = combine(comparisons, weights)
        first, second = (_mean_ms(comparisons, weights, second=which) for which in (False, True))
        notes = tuple(note for comparison in comparisons for note in comparison.notes)
        if turned:
            return Round(-log_ratio, before_ms=second, candidate_ms=first, notes=notes)
        return Round(log_ratio, before_ms=first, candidate_ms=second, notes=notes)

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


def in_two_looks(
    measure: Callable[[int], Round], count: int, settled: Callable[[Sequence[Round]], bool]
) -> tuple[Round, ...]:
    """Measure ``count`` rounds, and as many again if the first leave it open.

    Args:
        measure: Measures the round of a number.
        count: Rounds of one look.
        settled: Whether the rounds so far are enough.
    """
    rounds = [measure(number) for number in range(count)]
    if not settled(rounds):
        rounds += [measure(number) for number in range(count, 2 * count)]
    return tuple(rounds)


@contextmanager
def _fault_of(side: Side, before: Side) -> Iterator[None]:
    """Tell failures of the engine before apart from the candidate's."""
    try:
        yield
    except TrialError as error:
        if side is not before:
            raise
        msg = f"{side.name} does not load here any more: {error}"
        raise CannotCompare(msg) from error


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
    comparisons: Sequence[Comparison], weights: dict[str, float], *, second: bool
) -> float:
    """Weighted geometric mean of an arm's medians over the points."""
    total = sum(weights.values())
    logs = (
        weights[item.point] * math.log((item.candidate if second else item.baseline).median_ms)
        for item in comparisons
    )
    return math.exp(sum(logs) / total)
