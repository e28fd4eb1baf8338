"""One session of a study: the folder held, inputs ready, the baseline known, the journal open."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import math
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from smart_tuner import __version__
from smart_tuner.errors import UserInputError
from smart_tuner.model.files import write_json
from smart_tuner.model.prepare import prepare_workload
from smart_tuner.model.public import PREFIX
from smart_tuner.study.events import Note, PhaseStarted
from smart_tuner.study.identity import platform_identity
from smart_tuner.study.plan import AUTO, query_platform, requested_constraint
from smart_tuner.study.resume import Continued, check_same, same_workload
from smart_tuner.trial.evaluate import Evaluator
from smart_tuner.trial.trial import TrialOutcome
from smart_tuner.trial.verdict import describe_losses
from smart_tuner.validate.constraint import constraint_from_json, constraint_to_json
from smart_tuner.validate.losses import worst

if TYPE_CHECKING:
    from collections.abc import Iterator

    from smart_tuner.engine.platform import Platform
    from smart_tuner.knobs.space import SearchSpace
    from smart_tuner.model.workload import Workload
    from smart_tuner.study.events import Listener
    from smart_tuner.study.folder import StudyFolder
    from smart_tuner.study.plan import Plan
    from smart_tuner.trial.evaluate import BaselineReport
    from smart_tuner.validate.constraint import AccuracyConstraint

AUTO_FACTOR = 2.0
"""``--epsilon auto``: so many times the baseline's own loss, output by output."""

NOISY = 0.03
"""Half of the 95 % interval on the baseline's ratio to itself that is worth a warning."""

AUTO_FLOOR = 1e-6
"""The epsilon of an output that the baseline reproduces exactly."""


@dataclass(frozen=True, slots=True)
class Session:
    """What the search needs.

    Attributes:
        plan: What was decided.
        folder: The study folder, held by this process.
        platform: Where this runs.
        space: The knobs that are searched.
        missing: Knob and value of what the space holds and this machine does not offer.
        workload: Points and reference pairs, all on disk.
        evaluator: Tries routes.
        baseline: What the baseline is like.
        constraint: The accuracy constraint, every epsilon a number.
        seed: Seed of the sampler.
        notes: What the user should hear, for the result as well.
    """

    plan: Plan
    folder: StudyFolder
    platform: Platform
    space: SearchSpace
    missing: frozenset[tuple[str, str]]
    workload: Workload
    evaluator: Evaluator
    baseline: BaselineReport
    constraint: AccuracyConstraint
    seed: int
    notes: tuple[str, ...]

    @property
    def weights(self) -> dict[str, float]:
        """Weight by workload point."""
        return {point.name: point.weight for point in self.workload.points}


@contextlib.contextmanager
def open_session(plan: Plan, folder: StudyFolder, listener: Listener) -> Iterator[Session]:
    """Start a study, or continue one after checking that it is about the same thing.

    A study that cannot start leaves nothing behind.

    Raises:
        StudyBusy: Another process works in the folder.
        StudyMismatch: The folder holds a study of something else.
        ModelError: The model does not build or run, or does not repeat itself.
        UserInputError: The baseline breaks epsilon; names the two ways out.
    """
    made = folder.create()
    with folder.locked():
        try:
            yield from _opened(plan, folder, listener)
        finally:
            if not folder.exists:
                folder.discard(made)


@dataclass(frozen=True, slots=True)
class _Material:
    """What a session works on, before anything is built."""

    seed: int
    continued: Continued
    workload: Workload
    notes: tuple[str, ...]


def _opened(plan: Plan, folder: StudyFolder, listener: Listener) -> Iterator[Session]:
    document = folder.read_settings() if folder.exists else None
    folder.remove_leftovers()
    listener(PhaseStarted("prepare", f"Preparing {plan.model.path.name}"))
    platform = _platform(plan, folder)
    material = _new(plan, folder) if document is None else _kept(plan, platform, document, folder)
    notes = [*plan.notes, *material.notes]
    folder.remove_engines()
    listener(PhaseStarted("baseline", "Building and checking the baseline"))
    constraint = _constraint(plan, document)
    if document is None and AUTO in plan.settings.epsilon:
        constraint = _automatic(plan, material.workload, folder, constraint)
        notes.append(_automatic_note(constraint))
    with _evaluator(plan, material.workload, folder, constraint) as evaluator:
        evaluator.make_references()
        baseline = evaluator.check_baseline()
        _check_baseline(baseline, constraint)
        write_json(folder.platform_file, dataclasses.asdict(platform))
        start = document or _start(plan, platform, material.seed, constraint)
        folder.write_settings({**start, "settings": _settings_to_keep(plan)})
        session = Session(
            plan=plan,
            folder=folder,
            platform=platform,
            space=material.continued.space,
            missing=material.continued.missing,
            workload=material.workload,
            evaluator=evaluator,
            baseline=baseline,
            constraint=constraint,
            seed=material.seed,
            notes=(*notes, *baseline.notes, *_baseline_notes(baseline)),
        )
        for note in session.notes:
            listener(Note(note))
        yield session


def _new(plan: Plan, folder: StudyFolder) -> _Material:
    """A study's first session; a missing seed is drawn here, once."""
    seed = secrets.randbelow(2**31) if plan.settings.seed is None else plan.settings.seed
    workload, notes = prepare_workload(plan.model, plan.inputs(seed), folder.references)
    return _Material(seed, Continued(plan.space, frozenset(), ()), workload, notes)


def _kept(
    plan: Plan, platform: Platform, document: dict[str, Any], folder: StudyFolder
) -> _Material:
    """A later session.

    Raises:
        StudyMismatch: The study is about something else.
    """
    seed = int(document["seed"])
    continued = check_same(plan, platform, document, folder)
    workload, notes = same_workload(plan, folder, seed)
    return _Material(seed, continued, workload, (*continued.notes, *notes))


def _platform(plan: Plan, folder: StudyFolder) -> Platform:
    """Ask the backend, its words kept in the study folder for as long as they are needed."""
    with folder.scratch() as place:
        return query_platform(plan.settings.backend, place)


def _evaluator(
    plan: Plan, workload: Workload, folder: StudyFolder, constraint: AccuracyConstraint
) -> Evaluator:
    return Evaluator(workload, plan.options_with(constraint), folder.engines)


def _constraint(plan: Plan, document: dict[str, Any] | None) -> AccuracyConstraint:
    if document is None:
        return requested_constraint(plan.settings)
    return constraint_from_json(document.get("accuracy", {}))


def _automatic(
    plan: Plan, workload: Workload, folder: StudyFolder, unlimited: AccuracyConstraint
) -> AccuracyConstraint:
    """Epsilon as a stated multiple of the baseline's own loss, output by output."""
    with _evaluator(plan, workload, folder, unlimited) as evaluator:
        evaluator.make_references()
        baseline = evaluator.check_baseline()
    limits: dict[str, float] = {}
    for loss in baseline.trial.losses:
        if math.isfinite(loss.loss):
            least = max(limits.get(loss.output, AUTO_FLOOR), AUTO_FACTOR * loss.loss)
            limits[loss.output] = least
    highest = max(limits.values(), default=AUTO_FLOOR)
    return dataclasses.replace(unlimited, epsilon=highest, per_output=limits)


def _automatic_note(constraint: AccuracyConstraint) -> str:
    limits = ", ".join(f"{name} {limit:.3g}" for name, limit in constraint.per_output.items())
    return f"epsilon is {AUTO_FACTOR:g} times the baseline's own loss: {limits}."


def _baseline_notes(baseline: BaselineReport) -> Iterator[str]:
    """What the compiler said of the baseline, and whether this machine can measure at all."""
    if baseline.trial.engine is not None:
        yield from (f"Baseline: {note}." for note in baseline.trial.engine.notes)
    for comparison in baseline.trial.comparisons:
        if comparison.half_width > NOISY:
            yield (
                f"The baseline measured against itself is known to {100 * comparison.half_width:.0f} % "
                f"only at point {comparison.point}: this machine is busy or noisy, and smaller "
                "gains cannot be proven here."
            )


def _check_baseline(baseline: BaselineReport, constraint: AccuracyConstraint) -> None:
    """Stop before trial 1 if no route could be judged.

    Raises:
        UserInputError: The baseline itself is over epsilon; names the ways out.
    """
    if baseline.trial.outcome is TrialOutcome.FEASIBLE:
        return
    loss = worst(baseline.trial.losses)
    if not baseline.repeatable:
        msg = (
            f"The model does not repeat itself: {' '.join(baseline.notes)} No route can be judged "
            f"within epsilon {loss.epsilon:g}: fix its random seeds, or give a looser --epsilon."
        )
        raise UserInputError(msg)
    if not math.isfinite(loss.loss):
        msg = (
            f"The baseline does not match the reference: {describe_losses(baseline.trial.losses)}."
        )
        raise UserInputError(msg)
    msg = (
        f"The baseline itself is over epsilon: output {loss.output} loses {loss.loss:.3g} "
        f"({loss.metric}) on pair {loss.pair}, allowed is {loss.epsilon:g}. Either take "
        f"{AUTO_FACTOR:g} times the baseline's loss (--metric {constraint.metric} --epsilon auto), "
        "or judge routes against the baseline (--reference baseline)."
    )
    raise UserInputError(msg)


def _start(
    plan: Plan, platform: Platform, seed: int, constraint: AccuracyConstraint
) -> dict[str, Any]:
    """What ``study.toml`` keeps of a study's first session, settings left out."""
    now = datetime.datetime.now(datetime.timezone.utc)
    return {
        "created": now.isoformat(timespec="seconds"),
        "smart_tuner": __version__,
        "seed": seed,
        "identity": {**plan.identity, **platform_identity(platform)},
        "accuracy": constraint_to_json(constraint),
        "base": dict(plan.base),
        "space": {name: list(choices) for name, choices in plan.space.choices.items()},
    }


def _settings_to_keep(plan: Plan) -> dict[str, Any]:
    """Settings as ``study.toml`` keeps them: of the latest session, files by absolute path.

    The folder goes by where it lies, and the seed is the study's, given or drawn.
    """
    settings = plan.settings
    kept = settings.model_dump(mode="json", exclude={"study", "seed"})
    if not kept["model"].startswith(PREFIX):
        kept["model"] = str(plan.model.path)
    for name in ("base", "workload"):
        if kept[name] is not None:
            kept[name] = str(getattr(settings, name).absolute())
    return kept
