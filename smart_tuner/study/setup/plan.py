"""Everything that is decided before a study folder is touched."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from smart_tuner.engine.backend import load_backend
from smart_tuner.errors import UserInputError
from smart_tuner.knobs.check import check_knobs
from smart_tuner.knobs.read import database_digest
from smart_tuner.knobs.select import SpaceOptions, count_left_out, left_out, select_space
from smart_tuner.measure.goal import Goal
from smart_tuner.measure.latency import Statistic
from smart_tuner.model.load import load_model
from smart_tuner.model.names import listed
from smart_tuner.model.prepare import InputOptions
from smart_tuner.model.public import PREFIX, locate_model, public_model
from smart_tuner.model.scratch import scratch_folder
from smart_tuner.model.shapes import parse_shapes
from smart_tuner.model.synthetic import parse_ranges
from smart_tuner.route.expression import parse_expression
from smart_tuner.study.setup.base import merged_base, plugin_digests, rebase
from smart_tuner.study.setup.identity import KNOB_DATABASE
from smart_tuner.study.setup.precision import plan_precision, ready
from smart_tuner.trial.arm import RemoteArm
from smart_tuner.trial.options import EvaluatorOptions
from smart_tuner.validate.asked import parse_epsilons, parse_metrics
from smart_tuner.validate.constraint import WORST, AccuracyConstraint
from smart_tuner.validate.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from smart_tuner.engine.platform import Platform
    from smart_tuner.knobs.database import KnobDatabase
    from smart_tuner.knobs.space import SearchSpace
    from smart_tuner.model.spec import ModelSpec
    from smart_tuner.model.workload import Workload
    from smart_tuner.study.setup.identity import Identity
    from smart_tuner.study.setup.precision import PrecisionPlan
    from smart_tuner.study.setup.settings import StudySettings

AUTO = "auto"


@dataclass(frozen=True, slots=True)
class Plan:
    """A study before it starts.

    Attributes:
        settings: What the user decided.
        model: What is tuned.
        database: All knobs, with the base's values as defaults.
        space: The knobs that are searched.
        base: The user's production configuration.
        notes: What the user should hear.
        precision: What is varied in the graph itself; ``None`` without regions.
        lowered: Folder that routes are rewritten from, once it is made.
    """

    settings: StudySettings
    model: ModelSpec
    database: KnobDatabase
    space: SearchSpace
    base: Mapping[str, str]
    notes: tuple[str, ...]
    precision: PrecisionPlan | None = None
    lowered: Path | None = None

    @property
    def goal(self) -> Goal:
        """What is measured."""
        return Goal(
            Statistic(self.settings.statistic), self.base.get("objective", Goal().objective)
        )

    @property
    def limits(self) -> Limits:
        """Limits on an engine beside its accuracy."""
        said = self.settings
        return Limits(said.max_memory, said.max_engine_size, said.max_build_time)

    @property
    def evaluator_options(self) -> EvaluatorOptions:
        """How routes are tried, under the accuracy constraint that was asked for."""
        return self.options_with(requested_constraint(self.settings))

    def options_with(
        self, constraint: AccuracyConstraint, decided: Mapping[str, str] | None = None
    ) -> EvaluatorOptions:
        """How routes are tried, under a constraint whose epsilons are all known.

        Args:
            constraint: The accuracy constraint.
            decided: Settings of the base that an earlier session's baseline chose.
        """
        return EvaluatorOptions(
            backend=self.settings.backend,
            base={**self.base, **(decided or {})},
            constraint=constraint,
            limits=self.limits,
            build_timeout_seconds=self.settings.trial_timeout,
            run_timeout_seconds=self.settings.trial_timeout,
            memory_limit_bytes=self.settings.memory_limit,
            reference_from_baseline=self.settings.reference == "baseline",
            precision=self.lowered,
        )

    def with_lowered(self, workload: Workload, folder: Path) -> Plan:
        """The plan with the folder that routes are rewritten from; itself without regions.

        Args:
            workload: What is tuned; its search pairs calibrate.
            folder: Where that lies, made if missing.

        Raises:
            UserInputError: The model cannot be rewritten, or there are no inputs to calibrate from.
        """
        if self.precision is None:
            return self
        ready(self.precision, workload, folder, self.settings.trial_timeout)
        return replace(self, lowered=folder)

    def inputs(self, seed: int) -> InputOptions:
        """What the user says about inputs, a public network's own habits where they say nothing."""
        said = self.settings
        habits = _habits(said)
        return InputOptions(
            shapes=parse_shapes(said.shapes or habits.get("shapes", ())),
            inputs=said.inputs,
            references=said.outputs,
            held_out=said.held_out,
            ranges=parse_ranges(said.input_range or habits.get("input_range", ())),
            seed=seed,
            workload=said.workload,
        )

    @property
    def identity(self) -> Identity:
        """What a resume must match; inputs, knobs and platform are compared elsewhere."""
        constraint = requested_constraint(self.settings)
        limits = {"": constraint.epsilon, **constraint.per_output}
        epsilon = " ".join(f"{name}:{limit!r}".lstrip(":") for name, limit in limits.items())
        return {
            "backend": self.settings.backend,
            "model": self.model.sha256,
            KNOB_DATABASE: database_digest(self.database),
            "metric": constraint.metric,
            **{f"metric of {name}": metric for name, metric in constraint.metrics.items()},
            **({} if constraint.over_pairs == WORST else {"over pairs": constraint.over_pairs}),
            "epsilon": AUTO if AUTO in self.settings.epsilon else epsilon,
            "tolerances": f"rtol {constraint.rtol!r}, atol {constraint.atol!r}",
            "reference outputs": self.settings.reference,
            **self.goal.identity,
            **self.limits.identity,
            **(self.precision.identity if self.precision else {}),
            **{f"base {name}": value for name, value in self.base.items()},
            **plugin_digests(self.base),
        }


def make_plan(settings: StudySettings) -> Plan:
    """Read the model, find the knobs, and check everything that can be checked beforehand.

    Raises:
        UserInputError: A file or a setting is wrong.
        EnvironmentNotFit: The backend is missing or cannot work here.
    """
    constraint = requested_constraint(settings)
    model = load_model(locate_model(settings.model).expanduser())
    _check_outputs(constraint, model)
    base = merged_base(settings.base, settings.base_settings)
    backend = load_backend(settings.backend)
    precision = plan_precision(settings, model, backend, base)
    listed = backend.knobs(precision.lowered_spec(model) if precision else model)
    listed = precision.joined(listed) if precision else listed
    check_knobs((f"backend {settings.backend}, knob {knob.name}", knob) for knob in listed)
    database = rebase(listed, base)
    options = _space_options(settings, database)
    space = select_space(database, options)
    left = "; ".join(count_left_out(left_out(database, options)))
    found = f"{len(space.knobs)} of {len(database)} knobs are searched"
    plan = Plan(
        settings=settings,
        model=model,
        database=database,
        space=space,
        base=base,
        notes=(
            *model.notes,
            *(precision.notes if precision else ()),
            f"{found}; left out: {left}." if left else f"{found}.",
        ),
        precision=precision,
    )
    plan.inputs(seed=0)  # refuses malformed shapes and ranges now
    return plan


def query_platform(backend: str, place: Path | None = None) -> Platform:
    """Ask a backend, in a process of its own, what it runs on.

    Args:
        backend: Name of an installed backend, or ``module:Class``.
        place: Folder for the log of that process; a temporary one by default.

    Raises:
        EnvironmentNotFit: The backend is missing or cannot work here.
    """
    if place is None:
        with scratch_folder() as folder:
            return query_platform(backend, folder)
    with RemoteArm(EvaluatorOptions(backend), place / "platform.log") as arm:
        return arm.platform()


def requested_constraint(settings: StudySettings) -> AccuracyConstraint:
    """The accuracy constraint as the user gave it; ``auto`` is infinite until it is known.

    Raises:
        UserInputError: The metric or an epsilon is wrong.
    """
    default = AccuracyConstraint()
    texts = [text for text in settings.epsilon if text != AUTO]
    if len(texts) < len(settings.epsilon) - 1 or (texts and AUTO in settings.epsilon):
        msg = "--epsilon auto sets every epsilon: give it once, and no other epsilon with it."
        raise UserInputError(msg)
    given, per_output = parse_epsilons(texts)
    epsilon = default.epsilon if given is None else given
    metric, metrics = parse_metrics(settings.metric)
    return AccuracyConstraint(
        metric=metric or default.metric,
        epsilon=math.inf if AUTO in settings.epsilon else epsilon,
        per_output=per_output,
        rtol=settings.rtol,
        atol=settings.atol,
        metrics=metrics,
        over_pairs=settings.over_pairs,
    )


def _check_outputs(constraint: AccuracyConstraint, model: ModelSpec) -> None:
    names = [spec.name for spec in model.outputs]
    for flag, given in (("--epsilon", constraint.per_output), ("--metric", constraint.metrics)):
        if unknown := [name for name in given if name not in names]:
            msg = f"{flag}: the model has no output {unknown[0]!r}; its outputs: {listed(names)}."
            raise UserInputError(msg)


def _space_options(settings: StudySettings, database: KnobDatabase) -> SpaceOptions:
    given: dict[str, tuple[str, ...]] = {}
    for text in settings.values:
        for item in parse_expression(f"-{text.removeprefix('-')}", database).items:
            given[item.knob.name] = item.values
    return SpaceOptions(
        only=settings.only,
        freeze=settings.freeze,
        ask=settings.ask,
        values=given,
        include_idle=settings.all_knobs,
    )


def _habits(settings: StudySettings) -> Mapping[str, tuple[str, ...]]:
    """How a public network is usually fed, if it is one and the user says nothing of inputs."""
    text = str(settings.model)
    if not text.startswith(PREFIX) or settings.inputs or settings.workload:
        return {}
    return public_model(text.removeprefix(PREFIX)).settings
