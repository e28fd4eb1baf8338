"""One try of one route: build, validate, measure; every failure becomes an outcome."""

from __future__ import annotations

import shutil
import time
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from enum import Enum
from typing import TYPE_CHECKING

from smart_tuner.errors import EnvironmentNotFit, ModelError, RunError, TrialError, UserInputError
from smart_tuner.measure.stop_rule import LEAST_PAIRS
from smart_tuner.trial.arm import PointArm, RemoteArm, timed_pair
from smart_tuner.trial.baseline import BaselineFailed, figures_of, guarded, validate_all
from smart_tuner.trial.trial import Trial, TrialOutcome
from smart_tuner.trial.verdict import (
    describe,
    describe_error,
    describe_losses,
    is_worth_measuring,
    outcome_of,
    outcome_of_error,
    outcome_of_losses,
)
from smart_tuner.trial.watch import measuring_lock
from smart_tuner.validate.pairs import judged_again

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from smart_tuner.engine.build import Engine
    from smart_tuner.errors import SmartTunerError
    from smart_tuner.measure.latency import Comparison
    from smart_tuner.measure.stop_rule import StopRule
    from smart_tuner.model.workload import Workload
    from smart_tuner.route.build_route import BuildRoute
    from smart_tuner.trial.baseline import Baseline
    from smart_tuner.trial.options import EvaluatorOptions
    from smart_tuner.validate.limits import LimitUse
    from smart_tuner.validate.losses import OutputLoss

ENGINE_FOLDER, CHILD_LOG = "engine", "child.log"


class IfAlike(Enum):
    """How an engine is treated that has the baseline's structure, but not its bytes."""

    MEASURE = "as any other"
    GLANCE = "with the shortest measurement"
    TRUST = "as the baseline's own, not measured"


@dataclass(frozen=True, slots=True)
class Plan:
    """What is tried, and how.

    Attributes:
        route: The route.
        folder: The trial's folder; exists.
        rule: When it is measured enough.
        deadline_seconds: Wall-clock seconds for the whole trial; waiting for the device is free.
        engine: An engine built earlier, to be loaded instead of building one.
        timing_cache: Timings that the build starts from; ``None`` to start from nothing.
        if_alike: What to do with an engine that the compiler describes as it does the baseline's.
    """

    route: BuildRoute
    folder: Path
    rule: StopRule
    deadline_seconds: float | None = None
    engine: Engine | None = None
    timing_cache: Path | None = None
    if_alike: IfAlike = IfAlike.MEASURE


@dataclass(slots=True)
class _Progress:
    phase: str = "build"
    engine: Engine | None = None
    losses: tuple[OutputLoss, ...] = ()
    limits: tuple[LimitUse, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    unchanged: bool = False
    is_alike: bool = False
    message: str = ""
    seconds: dict[str, float] = field(default_factory=dict)
    starts: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def during(self, phase: str) -> Iterator[None]:
        self.phase = phase
        self.starts[phase] = datetime.now(timezone.utc).timestamp()
        started = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[phase] = time.perf_counter() - started


class Attempt:
    """One try of one route."""

    def __init__(
        self, workload: Workload, options: EvaluatorOptions, baseline: Baseline, plan: Plan
    ) -> None:
        """Prepare; nothing is started yet."""
        self._workload = workload
        self._options = options
        self._baseline = baseline
        self._plan = plan
        self._progress = _Progress()

    def run(self) -> Trial:
        """Try the route; the child has ended when this returns or raises.

        Raises:
            ModelError: The baseline does not build or run.
            UserInputError: A setting is wrong for every route, such as an unknown metric, or a
                limit on what the backend cannot say.
            EnvironmentNotFit: The baseline can no longer be measured.
        """
        baseline_fingerprint = self._baseline.engine.fingerprint
        self._baseline.limits()
        started = time.perf_counter()
        try:
            outcome = self._try(baseline_fingerprint)
        except (TrialError, ModelError) as error:
            outcome = self._failed(error)
        finally:
            if self._progress.engine is None:
                shutil.rmtree(self._plan.folder / ENGINE_FOLDER, ignore_errors=True)
        self._progress.seconds["total"] = time.perf_counter() - started
        return self._trial(outcome)

    def _try(self, baseline_fingerprint: str) -> TrialOutcome:
        progress, plan = self._progress, self._plan
        log = plan.folder / CHILD_LOG
        with RemoteArm(self._options, log, deadline_seconds=plan.deadline_seconds) as arm:
            with progress.during("build"):
                progress.engine = self._engine(arm)
            is_same = progress.engine.fingerprint == baseline_fingerprint
            if is_same and plan.engine is None:
                progress.unchanged = True
                progress.losses = self._baseline.losses
                progress.limits = self._limits(progress.engine, self._baseline.memory_bytes)
                return self._judge()
            structure = progress.engine.structure
            progress.is_alike = bool(structure) and structure == self._baseline.engine.structure
            with progress.during("validate"):
                arm.load(progress.engine)
                progress.losses = validate_all(arm, self._workload, self._options.constraint)
                progress.limits = self._limits(progress.engine, arm.facts().memory_bytes)
            if progress.is_alike and plan.if_alike is IfAlike.TRUST:
                progress.unchanged = True
            elif is_worth_measuring(progress.losses):
                self._measure(arm)
        return self._judge()

    def _engine(self, arm: RemoteArm) -> Engine:
        if self._plan.engine is not None:
            return self._plan.engine
        workdir = self._plan.folder / ENGINE_FOLDER
        workdir.mkdir()
        plan = self._plan
        request = replace(self._baseline.request, route=plan.route, timing_cache=plan.timing_cache)
        return arm.build(request, workdir)

    def _limits(self, engine: Engine, memory_bytes: int | None) -> tuple[LimitUse, ...]:
        try:
            return self._options.limits.use(figures_of(engine, memory_bytes))
        except UserInputError as error:
            raise RunError(str(error)) from error

    def _judge(self) -> TrialOutcome:
        progress = self._progress
        if not progress.message:
            progress.message = describe(progress.losses, progress.limits)
        return outcome_of(progress.losses, progress.limits)

    def _measure(self, arm: RemoteArm) -> None:
        started = time.perf_counter()
        with measuring_lock(self._baseline.platform, self._options.on_wait):
            waited = time.perf_counter() - started
            arm.postpone_deadline(waited)
            self._progress.seconds["wait"] = waited
            with self._progress.during("measure"):
                try:
                    self._compare(arm)
                except BaselineFailed:
                    self._compare_again(arm)

    def _compare_again(self, arm: RemoteArm) -> None:
        """Measure once more with a fresh child; find out whose fault it is if that fails too."""
        self._baseline.end_child()
        try:
            self._compare(arm)
        except BaselineFailed as error:
            arm.close()
            self._baseline.end_child()
            self._blame(error)

    def _blame(self, error: BaselineFailed) -> None:
        """Run the baseline alone: if that works, the candidate took what the baseline needs.

        Raises:
            RunError: It works alone.
            EnvironmentNotFit: It does not.
        """
        try:
            guarded(self._baseline.arm, self._workload.points[0]).time_block(1)
        except BaselineFailed as alone:
            msg = f"The baseline can no longer be measured ({alone}); free memory and try again."
            raise EnvironmentNotFit(msg) from error
        msg = f"the baseline cannot run beside this engine: {error}"
        raise RunError(msg) from error

    def _compare(self, arm: RemoteArm) -> None:
        rule = self._rule()
        comparisons: list[Comparison] = []
        for point in self._workload.points:
            arms = (
                guarded(self._baseline.arm, point),
                PointArm(arm, timed_pair(point).inputs),
            )
            comparison = self._baseline.watch.compare(arms, point.name, rule)
            comparisons.append(self._with_tails(comparison, arm))
            changed = judged_again(arm.check(point), self._progress.losses)
            if describe_losses(changed) and not self._progress.message:
                baseline = guarded(self._baseline.arm, point).check(point)
                self._note_changed(changed, judged_again(baseline, self._baseline.losses))
        self._progress.comparisons = tuple(comparisons)

    def _with_tails(self, comparison: Comparison, arm: RemoteArm) -> Comparison:
        """Keep the tails of both arms under load, where the objective is a throughput."""
        ours = arm.facts().p99_ms
        theirs = None if ours is None else self._baseline.arm.facts().p99_ms
        if ours is None or theirs is None:
            return comparison
        tails = {"p99_ms": ours, "baseline_p99_ms": theirs}
        return replace(comparison, device={**comparison.device, **tails})

    def _note_changed(
        self, losses: tuple[OutputLoss, ...], baseline_losses: tuple[OutputLoss, ...]
    ) -> None:
        """Blame the candidate, unless the baseline's outputs change from run to run as well.

        A model with a seeded random node repeats its first runs in fresh processes, which is
        what routes are judged by, but no later run.
        """
        is_news = outcome_of_losses(self._progress.losses) is TrialOutcome.FEASIBLE
        if is_news and not describe_losses(baseline_losses):
            self._progress.message = f"outputs changed while timing: {describe_losses(losses)}"
            self._progress.losses += losses

    def _rule(self) -> StopRule:
        """A route that is too far off gets the shortest measurement: its latency only guides.

        So does one whose engine the compiler describes as the baseline's: little is in doubt.
        """
        rule, progress = self._plan.rule, self._progress
        is_plain = not progress.is_alike or self._plan.if_alike is IfAlike.MEASURE
        if is_plain and outcome_of(progress.losses, progress.limits) is TrialOutcome.FEASIBLE:
            return rule
        return replace(
            rule,
            min_pairs=min(rule.min_pairs, LEAST_PAIRS),
            max_pairs=min(rule.max_pairs, LEAST_PAIRS),
        )

    def _failed(self, error: SmartTunerError) -> TrialOutcome:
        self._progress.message = describe_error(error, self._progress.phase)
        return outcome_of_error(error, self._progress.phase)

    def _trial(self, outcome: TrialOutcome) -> Trial:
        progress = self._progress
        return Trial(
            route=self._plan.route,
            outcome=outcome,
            engine=progress.engine,
            losses=progress.losses,
            comparisons=progress.comparisons,
            unchanged=progress.unchanged,
            is_alike=progress.is_alike,
            message=progress.message,
            limits=progress.limits,
            seconds=_rounded(progress.seconds),
            starts=_rounded(progress.starts),
        )


def _rounded(seconds: Mapping[str, float]) -> Mapping[str, float]:
    return {name: round(value, 6) for name, value in seconds.items()}
