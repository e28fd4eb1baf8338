"""The baseline: the engine of the base with no route, kept in a child over all trials."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from smart_tuner.engine.build import BuildRequest, Engine
from smart_tuner.errors import EnvironmentNotFit, ModelError, TrialError
from smart_tuner.trial.arm import PointArm, RemoteArm, timed_pair
from smart_tuner.trial.watch import Watch
from smart_tuner.validate.limits import BUILD_TIME, ENGINE_SIZE, MEMORY
from smart_tuner.validate.pairs import judged_over_pairs

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from smart_tuner.engine.platform import Platform
    from smart_tuner.model.workload import Workload, WorkloadPoint
    from smart_tuner.trial.options import EvaluatorOptions
    from smart_tuner.validate.constraint import AccuracyConstraint
    from smart_tuner.validate.limits import LimitUse
    from smart_tuner.validate.losses import OutputLoss

TIMING_CACHE = "timing.cache"


class BaselineFailed(Exception):  # noqa: N818 - as the outcomes in ``errors``
    """The baseline did not run while it was measured: no fault of the candidate."""


@dataclass(frozen=True, slots=True)
class _State:
    arm: RemoteArm
    engine: Engine
    platform: Platform
    losses: tuple[OutputLoss, ...]
    memory_bytes: int | None


class Baseline:
    """The baseline's engine, loaded in a child that is started again when it died.

    A child that died loads the same engine file again, so that the trials before and after are
    compared with the very same engine; only ``renew`` builds another one.
    """

    def __init__(self, workload: Workload, options: EvaluatorOptions, folder: Path) -> None:
        """Prepare; nothing is built yet.

        Args:
            workload: What is tuned.
            options: How engines are built and judged.
            folder: Folder for the engine and the log of its child.
        """
        self._workload = workload
        self._options = options
        self.folder = folder
        self._state: _State | None = None
        self._decided: Mapping[str, str] = {}
        self._timing_cache: Path | None = None
        self._watch: Watch | None = None

    @property
    def decided(self) -> Mapping[str, str]:
        """Settings of the base that the baseline chose, for all engines of the study."""
        self._ready()
        return self._decided

    @property
    def request(self) -> BuildRequest:
        """The request that routes are put on: the base, with what the baseline decided."""
        request = build_request(self._workload, self._options)
        return replace(request, base={**request.base, **self._decided})

    @property
    def timing_cache(self) -> Path | None:
        """A read-only copy of the timings of the first build; ``None`` if it left none."""
        self._ready()
        return self._timing_cache

    @property
    def memory_bytes(self) -> int | None:
        """Device memory that the engine holds; ``None`` if the backend cannot say."""
        return self._ready().memory_bytes

    def limits(self) -> tuple[LimitUse, ...]:
        """Hold the engine against the limits.

        Raises:
            UserInputError: A limit is set on what the backend cannot say.
        """
        return self._options.limits.use(figures_of(self.engine, self.memory_bytes))

    @property
    def engine(self) -> Engine:
        """The engine, built on first use."""
        return self._ready().engine

    @property
    def losses(self) -> tuple[OutputLoss, ...]:
        """Losses of the engine on every search pair."""
        return self._ready().losses

    @property
    def platform(self) -> Platform:
        """The platform that the engine runs on."""
        return self._ready().platform

    @property
    def watch(self) -> Watch:
        """What compares on the platform's device."""
        if self._watch is None:
            self._watch = Watch(self.platform, on_wait=self._options.on_wait)
        return self._watch

    @property
    def arm(self) -> RemoteArm:
        """The child with the engine loaded, started if it is not alive.

        Raises:
            ModelError: The baseline does not build or run: no route can be tried.
            EnvironmentNotFit: It built and ran before, and no longer does.
        """
        state = self._ready()
        if not state.arm.is_alive:
            state = self._restart(state)
        return state.arm

    def renew(self) -> None:
        """Build the engine again, in a fresh process and from an empty timing cache.

        Raises:
            EnvironmentNotFit: It built before, and no longer does.
        """
        had_built = self._state is not None
        self.close()
        try:
            self._ready()
        except ModelError as error:
            if not had_built:
                raise
            msg = f"The baseline built before, but no longer does: {error}"
            raise EnvironmentNotFit(msg) from error

    def end_child(self) -> None:
        """End the child, so that the next use of ``arm`` loads the engine in a fresh one."""
        if self._state is not None:
            self._state.arm.close()

    def load_beside(self) -> RemoteArm:
        """Return a second child with the same engine file loaded; the caller closes it."""
        engine = self.engine
        arm = RemoteArm(self._options, self._log)
        try:
            arm.load(engine)
        except BaseException:
            arm.close()
            raise
        return arm

    def close(self) -> None:
        """End the child; the engine stays on disk."""
        if self._state is not None:
            self._state.arm.close()
            self._state = None

    @property
    def _log(self) -> Path:
        return self.folder / "child.log"

    def _ready(self) -> _State:
        if self._state is None:
            self._state = self._build()
        return self._state

    def _build(self) -> _State:
        workdir = self.folder / "engine"
        shutil.rmtree(workdir, ignore_errors=True)
        workdir.mkdir(parents=True)
        arm = RemoteArm(self._options, self._log)
        try:
            engine = arm.build(self.request, workdir)
            arm.load(engine)
            losses = validate_all(arm, self._workload, self._options.constraint)
            facts = arm.facts()
            self._decided = {**self._decided, **facts.decided}
            # A base that lowers regions has a model of its own.
            engine = replace(engine, request=replace(self.request, model=engine.request.model))
            self._keep_timing_cache(engine)
            return _State(arm, engine, arm.platform(), losses, facts.memory_bytes)
        except (TrialError, ModelError) as error:
            arm.close()
            msg = f"The baseline does not build or run: {error}"
            raise ModelError(msg) from error
        except BaseException:
            arm.close()
            raise

    def _keep_timing_cache(self, engine: Engine) -> None:
        """Copy the first build's timings aside: engines built later must not add to them."""
        kept = self.folder / TIMING_CACHE
        if self._timing_cache is None and engine.timing_cache and engine.timing_cache.is_file():
            kept.unlink(missing_ok=True)
            shutil.copyfile(engine.timing_cache, kept)
            kept.chmod(0o444)
            self._timing_cache = kept

    def _restart(self, state: _State) -> _State:
        state.arm.close()
        try:
            arm = self.load_beside()
        except (TrialError, ModelError) as error:
            msg = f"The baseline ran before, but can no longer be loaded: {error}"
            raise EnvironmentNotFit(msg) from error
        self._state = replace(state, arm=arm)
        return self._state


@dataclass(frozen=True, slots=True)
class GuardedBaseline:
    """The baseline on one point, whose failures are told apart from the candidate's."""

    baseline: PointArm

    def time_block(self, iterations: int) -> tuple[float, ...]:
        """Time a block and return milliseconds.

        Raises:
            BaselineFailed: The baseline did not run.
        """
        try:
            return self.baseline.time_block(iterations)
        except TrialError as error:
            raise BaselineFailed(str(error)) from error

    def check(self, point: WorkloadPoint) -> tuple[OutputLoss, ...]:
        """Return the losses of what the last timed run left behind.

        Raises:
            BaselineFailed: The baseline did not run.
        """
        try:
            return self.baseline.arm.check(point)
        except TrialError as error:
            raise BaselineFailed(str(error)) from error


def guarded(arm: RemoteArm, point: WorkloadPoint) -> GuardedBaseline:
    """Return the baseline's arm on one point."""
    return GuardedBaseline(PointArm(arm, timed_pair(point).inputs))


def validate_all(
    arm: RemoteArm,
    workload: Workload,
    constraint: AccuracyConstraint,
    *,
    held_out: bool = False,
) -> tuple[OutputLoss, ...]:
    """Return the losses of an arm on every search pair of every point, or every held-out one."""
    losses = [
        loss
        for point in workload.points
        for pair in point.pairs
        if pair.held_out is held_out
        for loss in arm.validate(point, pair)
    ]
    return judged_over_pairs(losses, constraint)


def figures_of(engine: Engine, memory_bytes: int | None) -> dict[str, float | None]:
    """Return what limits are put on, by name."""
    return {
        MEMORY: memory_bytes,
        ENGINE_SIZE: engine.size_bytes,
        BUILD_TIME: engine.build_seconds,
    }


def build_request(workload: Workload, options: EvaluatorOptions) -> BuildRequest:
    """Return the request of the baseline's engine."""
    return BuildRequest(
        model=workload.model.path,
        base=options.base,
        shapes=tuple(point.shapes for point in workload.points),
        precision=options.precision,
    )
