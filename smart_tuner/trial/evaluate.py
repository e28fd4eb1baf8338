"""Route in, trial out: the only place where failures become outcomes."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from smart_tuner.errors import UserInputError
from smart_tuner.measure.stop_rule import StopRule
from smart_tuner.model.files import file_digest, write_json
from smart_tuner.trial.arm import RemoteArm
from smart_tuner.trial.attempt import CHILD_LOG, ENGINE_FOLDER, Attempt, IfAlike, Plan
from smart_tuner.trial.baseline import Baseline, validate_all
from smart_tuner.trial.baseline_check import BaselineReport, check_baseline, repeatability
from smart_tuner.trial.options import EvaluatorOptions
from smart_tuner.trial.record import remove_leftovers, trial_to_json
from smart_tuner.trial.references import MadeReferences, make_references

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from typing_extensions import Self

    from smart_tuner.engine.build import Engine
    from smart_tuner.engine.platform import Platform
    from smart_tuner.model.workload import Workload
    from smart_tuner.route.build_route import BuildRoute
    from smart_tuner.trial.trial import Trial
    from smart_tuner.validate.losses import OutputLoss

__all__ = ["BaselineReport", "Evaluator", "EvaluatorOptions"]

RESULT_FILE, ROUTE_FILE = "result.json", "route.txt"


class Evaluator:
    """Tries routes of one workload on one backend, each in a process of its own.

    A context manager: at the end no child is left, whatever happened.
    """

    def __init__(self, workload: Workload, options: EvaluatorOptions, folder: Path) -> None:
        """Prepare; nothing is built yet.

        Args:
            workload: What is tuned.
            options: What all trials have in common.
            folder: Gets a folder ``baseline`` with the baseline's engine and logs.
        """
        self._workload = workload
        self._options = options
        self._folder = folder / "baseline"
        self._baseline = Baseline(workload, options, self._folder)
        self._shares_timing_cache = True
        self._known: dict[BuildRoute, Trial] = {}
        self._if_alike = IfAlike.GLANCE

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """End the baseline's child."""
        self._baseline.close()

    @property
    def baseline_fingerprint(self) -> str:
        """Fingerprint of the baseline's engine in use, built on first use."""
        return self._baseline.engine.fingerprint

    @property
    def decided(self) -> Mapping[str, str]:
        """Settings of the base that the baseline chose, for every engine of the study."""
        return self._baseline.decided

    @property
    def timing_cache(self) -> Path | None:
        """Timings that trials start from; ``None`` if there are none, or they are not shared."""
        return self._baseline.timing_cache if self._shares_timing_cache else None

    def stop_sharing_timing_cache(self) -> None:
        """Let every later build start from an empty timing cache."""
        self._shares_timing_cache = False

    def take_for_tried(self, trials: Iterable[Trial]) -> None:
        """Answer from these trials wherever their routes are tried, except in fresh builds.

        Args:
            trials: Tried elsewhere, against the same baseline; the first of a route counts.
        """
        for trial in trials:
            self._known.setdefault(trial.route, trial)

    def trust_structure(self) -> None:
        """Take engines that the compiler describes as the baseline's for its own, unmeasured."""
        self._if_alike = IfAlike.TRUST

    @property
    def platform(self) -> Platform:
        """The platform as the baseline's child sees it."""
        return self._baseline.platform

    def make_references(self) -> MadeReferences:
        """Write the outputs of every reference pair that has none.

        Raises:
            ModelError: The model does not build or run.
        """
        return make_references(self._workload, self._options, self._folder)

    def check_baseline(self, rule: StopRule | None = None) -> BaselineReport:
        """Build, validate and measure the baseline, and see whether it repeats itself.

        A baseline that is over epsilon is not measured: no study can begin with it.

        Args:
            rule: When it is measured enough.

        Raises:
            ModelError: The baseline does not build or run: no route can be tried.
            UserInputError: A limit is set on what the backend cannot say.
        """
        return check_baseline(self._baseline, self._workload, self._options, rule or StopRule())

    def repeatability(self) -> tuple[str, ...]:
        """Say how the baseline's outputs differ from run to run; nothing when they do not.

        Raises:
            ModelError: The baseline does not build or run.
        """
        with self._baseline.load_beside() as second:
            return repeatability(self._baseline, second, self._workload)

    def evaluate(
        self,
        route: BuildRoute,
        folder: Path,
        rule: StopRule,
        *,
        fresh_baseline: bool = False,
        cold: bool = False,
        deadline_seconds: float | None = None,
    ) -> Trial:
        """Try one route; a route that fails is a trial too, never an exception.

        Args:
            route: The route.
            folder: The trial's folder; gets ``route.txt``, ``child.log``, ``result.json`` and
                ``engine``. What an earlier try left there is removed.
            rule: When it is measured enough.
            fresh_baseline: Build the baseline again first; both builds start from empty timing
                caches then.
            cold: Let the route's build start from an empty timing cache.
            deadline_seconds: Wall-clock seconds for this trial; the baseline and waiting for the
                device do not count.

        Raises:
            ModelError: The baseline does not build or run.
            UserInputError: A setting is wrong for every route.
            EnvironmentNotFit: The baseline no longer runs, or the folder cannot be written.
        """
        drop_engine(folder)
        known = None if fresh_baseline or cold else self._known.get(route)
        if known is not None:
            keep_trial(known, folder)
            return known
        if fresh_baseline:
            self._baseline.renew()
        cache = None if cold or fresh_baseline else self.timing_cache
        # Fresh builds decide: they are measured in full.
        if_alike = IfAlike.MEASURE if fresh_baseline else self._if_alike
        plan = Plan(route, folder, rule, deadline_seconds, timing_cache=cache, if_alike=if_alike)
        return self._try(plan)

    def measure_again(
        self,
        trial: Trial,
        folder: Path,
        rule: StopRule,
        *,
        fresh_baseline: bool = False,
        deadline_seconds: float | None = None,
    ) -> Trial:
        """Load the engine file of an earlier trial, validate and measure it; nothing is built.

        Args:
            trial: An earlier trial whose engine is still on disk.
            folder: Another folder than that trial's.
            rule: When it is measured enough.
            fresh_baseline: Build the baseline again first.
            deadline_seconds: As for ``evaluate``.

        Raises:
            UserInputError: The trial has no engine on disk.
            ModelError: The baseline does not build or run.
            EnvironmentNotFit: The baseline no longer runs, or the folder cannot be written.
        """
        if fresh_baseline:
            self._baseline.renew()
        engine = _engine_on_disk(trial)
        return self._try(Plan(trial.route, folder, rule, deadline_seconds, engine))

    def timing_cache_keys(self, caches: Sequence[Path]) -> tuple[frozenset[str] | None, ...]:
        """Return the keys of timing caches, ``None`` where the backend cannot tell them.

        Raises:
            TrialError: A file is not a timing cache.
        """
        with RemoteArm(self._options, self._folder / "keys.log") as arm:
            return tuple(arm.cache_keys(cache) for cache in caches)

    def held_out_losses(self, trial: Trial, log: Path) -> tuple[OutputLoss, ...]:
        """Load the engine file of an earlier trial and judge it on the held-out pairs.

        Args:
            trial: An earlier trial whose engine is still on disk.
            log: File that the child's output is appended to.

        Raises:
            UserInputError: The trial has no engine on disk.
            TrialError: The engine does not run on a held-out pair.
        """
        with RemoteArm(self._options, log) as arm:
            arm.load(_engine_on_disk(trial))
            constraint = self._options.constraint
            return validate_all(arm, self._workload, constraint, held_out=True)

    def _try(self, plan: Plan) -> Trial:
        plan.folder.mkdir(parents=True, exist_ok=True)
        remove_leftovers(plan.folder)
        for name in (CHILD_LOG, RESULT_FILE):
            (plan.folder / name).unlink(missing_ok=True)
        trial = Attempt(self._workload, self._options, self._baseline, plan).run()
        keep_trial(trial, plan.folder)
        return trial


def keep_trial(trial: Trial, folder: Path) -> None:
    """Write ``route.txt`` and ``result.json`` into a trial's folder, made if missing."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ROUTE_FILE).write_text(f"{trial.route}\n", encoding="utf-8")
    write_json(folder / RESULT_FILE, trial_to_json(trial))


def drop_engine(folder: Path) -> None:
    """Delete the engine of a trial's folder, to save disk space; its record stays."""
    shutil.rmtree(folder / ENGINE_FOLDER, ignore_errors=True)


def _engine_on_disk(trial: Trial) -> Engine:
    if trial.engine is None or not trial.engine.path.exists():
        msg = f"The engine of route {str(trial.route)!r} is not on disk; evaluate the route again."
        raise UserInputError(msg)
    if file_digest(trial.engine.path) != trial.engine.sha256:
        msg = f"{trial.engine.path}: not the engine that was built; evaluate the route again."
        raise UserInputError(msg)
    return trial.engine
