"""What the baseline is like before anything is tuned: its losses, its latency, its repeatability."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from smart_tuner.errors import ModelError, TrialError
from smart_tuner.route.build_route import BuildRoute
from smart_tuner.trial.arm import PointArm, timed_pair
from smart_tuner.trial.trial import Trial, TrialOutcome
from smart_tuner.trial.verdict import describe, outcome_of
from smart_tuner.trial.watch import measuring_lock

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_tuner.measure.latency import Comparison
    from smart_tuner.measure.stop_rule import StopRule
    from smart_tuner.model.workload import Workload, WorkloadPoint
    from smart_tuner.trial.arm import RemoteArm
    from smart_tuner.trial.baseline import Baseline
    from smart_tuner.trial.options import EvaluatorOptions


@dataclass(frozen=True, slots=True)
class BaselineReport:
    """What the baseline is like, before anything is tuned.

    Attributes:
        trial: The default route as a trial; each comparison is the baseline against a second
            process with the same engine, so its log ratio shows the measurement's own noise.
        median_ms: Latency by workload point, the figure that is compared (the median unless told
            otherwise); empty if the baseline is over epsilon or a limit.
        repeatable: Whether the same inputs always gave the same outputs, within one session and
            in a fresh process.
        notes: Which output was not repeatable, and by how much.
    """

    trial: Trial
    median_ms: Mapping[str, float]
    repeatable: bool
    notes: tuple[str, ...] = ()


def check_baseline(
    baseline: Baseline, workload: Workload, options: EvaluatorOptions, rule: StopRule
) -> BaselineReport:
    """Build, validate and measure the baseline, and see whether it repeats itself.

    Args:
        baseline: The baseline; built here if it is not yet.
        workload: What is tuned.
        options: Says whom to tell of a wait.
        rule: When it is measured enough.

    Raises:
        ModelError: The baseline does not build or run: no route can be tried.
        UserInputError: A limit is set on what the backend cannot say.
    """
    started = time.perf_counter()
    losses, limits = baseline.losses, baseline.limits()
    outcome = outcome_of(losses, limits)
    comparisons: tuple[Comparison, ...] = ()
    try:
        with baseline.load_beside() as second:
            notes = repeatability(baseline, second, workload)
            if outcome is TrialOutcome.FEASIBLE:
                with measuring_lock(baseline.platform, options.on_wait):
                    comparisons = tuple(
                        _against(baseline, second, point, rule) for point in workload.points
                    )
    except TrialError as error:
        msg = f"The baseline does not run reliably: {error}"
        raise ModelError(msg) from error
    trial = Trial(
        route=BuildRoute(),
        outcome=outcome,
        engine=baseline.engine,
        losses=losses,
        comparisons=comparisons,
        unchanged=True,
        message=describe(losses, limits),
        limits=limits,
        seconds={
            "build": baseline.engine.build_seconds,
            "measure": sum(comparison.seconds for comparison in comparisons),
            "total": time.perf_counter() - started,
        },
    )
    figures = {item.point: item.baseline.figure(rule.statistic) for item in comparisons}
    return BaselineReport(trial, figures, repeatable=not notes, notes=notes)


def _against(
    baseline: Baseline, second: RemoteArm, point: WorkloadPoint, rule: StopRule
) -> Comparison:
    inputs = timed_pair(point).inputs
    arms = (PointArm(baseline.arm, inputs), PointArm(second, inputs))
    return baseline.watch.compare(arms, point.name, rule)


def repeatability(baseline: Baseline, second: RemoteArm, workload: Workload) -> tuple[str, ...]:
    """Run each point twice in one session and once in another process; say what differs.

    Args:
        baseline: The baseline.
        second: Another process with the same engine.
        workload: Its points are run.
    """
    first, notes = baseline.arm, []
    earlier = baseline.folder / "repeat.tensors"
    try:
        for point in workload.points:
            inputs = timed_pair(point).inputs
            first.infer(inputs, earlier)
            notes += _notes(point, "twice in one session", first.repeat(inputs, earlier))
            notes += _notes(point, "in a fresh process", second.repeat(inputs, earlier))
    finally:
        earlier.unlink(missing_ok=True)
    return tuple(notes)


def _notes(point: WorkloadPoint, when: str, lines: tuple[str, ...]) -> list[str]:
    return [f"Point {point.name!r}, same inputs {when}: {line}." for line in lines]
