"""One session of a study: the folder held, inputs ready, the baseline known, the journal open."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import math
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smart_tuner.model.files import write_json
from smart_tuner.model.prepare import prepare_workload
from smart_tuner.model.public import PREFIX
from smart_tuner.study.files.admission import AUTO_FACTOR, baseline_notes, check_admission
from smart_tuner.study.files.kept import NAME
from smart_tuner.study.files.prior import (
    NETWORK,
    begin_prior,
    named_priors,
    network_facts,
    prior_notes,
)
from smart_tuner.study.files.resume import Continued, check_same, same_workload
from smart_tuner.study.progress.events import Note, PhaseStarted
from smart_tuner.study.setup.identity import platform_identity
from smart_tuner.study.setup.plan import AUTO, query_platform, requested_constraint
from smart_tuner.trial.evaluate import Evaluator
from smart_tuner.trial.references import MadeReferences
from smart_tuner.validate.constraint import constraint_from_json, constraint_to_json
from smart_tuner.validate.pairs import over_pairs
from smart_tuner.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from smart_tuner.engine.platform import Platform
    from smart_tuner.knobs.space import SearchSpace
    from smart_tuner.model.workload import Workload
    from smart_tuner.study.files.folder import StudyFolder
    from smart_tuner.study.progress.events import Listener
    from smart_tuner.study.setup.plan import Plan
    from smart_tuner.trial.evaluate import BaselineReport
    from smart_tuner.validate.constraint import AccuracyConstraint

DECIDED, REFEREE = "decided", "reference_backend"
"""What ``study.toml`` keeps of the first session beside its settings."""

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
        decided: Settings of the base that the baseline chose, once for the whole study.
        referee: Who made the reference outputs that were not given; empty if all were.
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
    decided: Mapping[str, str]
    referee: str
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
    plan = _with_lowered(plan, material.workload, folder, listener)
    notes = [*plan.notes, *material.notes]
    folder.remove_engines()
    listener(PhaseStarted("baseline", "Building and checking the baseline"))
    constraint = _constraint(plan, document)
    made = MadeReferences(str((document or {}).get(REFEREE, "")))
    if document is None and AUTO in plan.settings.epsilon:
        constraint, made = _automatic(plan, material.workload, folder, constraint)
        notes.append(_automatic_note(constraint))
    options = plan.options_with(constraint, (document or {}).get(DECIDED, {}))
    with Evaluator(material.workload, options, folder.engines) as evaluator:
        made = _latest(evaluator.make_references(), made)
        baseline = evaluator.check_baseline(plan.goal.search_rule)
        check_admission(baseline, constraint, plan.goal)
        write_json(folder.platform_file, dataclasses.asdict(platform))
        start = document or _start(plan, platform, material.seed, constraint)
        if document is None:
            prior, said = begin_prior(plan, platform, constraint, folder)
            start |= prior
        else:
            said = prior_notes(document, plan.settings.prior)
        notes += said
        decided = dict(evaluator.decided)
        kept = {DECIDED: decided, REFEREE: made.backend, "settings": _settings_to_keep(plan)}
        folder.write_settings({**start, **kept})
        notes += [made.note] * bool(made.note) + _decided_note(decided)
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
            decided=decided,
            referee=made.backend,
            seed=material.seed,
            notes=(*notes, *baseline.notes, *baseline_notes(baseline)),
        )
        for note in session.notes:
            listener(Note(note))
        yield session


def _with_lowered(plan: Plan, workload: Workload, folder: StudyFolder, listener: Listener) -> Plan:
    """Prepare what routes that lower regions are rewritten from."""
    if plan.precision is not None:
        listener(PhaseStarted("prepare", "Preparing lower precision of regions"))
    return plan.with_lowered(workload, folder.precision)


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


def _latest(made: MadeReferences, before: MadeReferences) -> MadeReferences:
    """Who made the references: nobody has to make them twice."""
    return made if made.backend else before


def _decided_note(decided: Mapping[str, str]) -> list[str]:
    choices = ", ".join(f"{name} {value}" for name, value in decided.items())
    return [f"Decided on the baseline, for every route: {choices}."] if choices else []


def _constraint(plan: Plan, document: dict[str, Any] | None) -> AccuracyConstraint:
    if document is None:
        return requested_constraint(plan.settings)
    return constraint_from_json(document.get("accuracy", {}))


def _automatic(
    plan: Plan, workload: Workload, folder: StudyFolder, unlimited: AccuracyConstraint
) -> tuple[AccuracyConstraint, MadeReferences]:
    """Epsilon as a stated multiple of the baseline's own loss, output by output."""
    with Evaluator(workload, plan.options_with(unlimited), folder.engines) as evaluator:
        made = evaluator.make_references()
        baseline = evaluator.check_baseline(plan.goal.search_rule)
    limits: dict[str, float] = {}
    for loss in over_pairs(baseline.trial.losses):
        if math.isfinite(loss.judged):
            least = max(limits.get(loss.output, AUTO_FLOOR), AUTO_FACTOR * loss.judged)
            limits[loss.output] = least
    highest = max(limits.values(), default=AUTO_FLOOR)
    return dataclasses.replace(unlimited, epsilon=highest, per_output=limits), made


def _automatic_note(constraint: AccuracyConstraint) -> str:
    limits = ", ".join(f"{name} {limit:.3g}" for name, limit in constraint.per_output.items())
    return f"epsilon is {AUTO_FACTOR:g} times the baseline's own loss: {limits}."


def _start(
    plan: Plan, platform: Platform, seed: int, constraint: AccuracyConstraint
) -> dict[str, Any]:
    """What ``study.toml`` keeps of a study's first session, settings left out."""
    now = datetime.datetime.now(datetime.timezone.utc)
    return {
        "created": now.isoformat(timespec="seconds"),
        "smart_tuner": __version__,
        "seed": seed,
        **_name(plan),
        "identity": {**plan.identity, **platform_identity(platform)},
        "accuracy": constraint_to_json(constraint),
        "base": dict(plan.base),
        NETWORK: network_facts(plan.model),
        "space": {name: list(choices) for name, choices in plan.space.choices.items()},
    }


def _name(plan: Plan) -> dict[str, str]:
    """The study's name in a database, which may hold others."""
    if plan.settings.storage is None:
        return {}
    return {NAME: f"{plan.model.path.stem[:100]}-{secrets.token_hex(4)}"}


def _settings_to_keep(plan: Plan) -> dict[str, Any]:
    """Settings as ``study.toml`` keeps them: of the latest session, files by absolute path.

    The folder goes by where it lies, and the seed is the study's, given or drawn.
    """
    settings = plan.settings
    kept = settings.model_dump(mode="json", exclude={"study", "seed"})
    if not kept["model"].startswith(PREFIX):
        kept["model"] = str(plan.model.path)
    kept["plugin"] = [str(Path(name).expanduser().absolute()) for name in settings.plugin]
    kept["prior"] = named_priors(settings.prior)
    for name in ("base", "workload"):
        if kept[name] is not None:
            kept[name] = str(getattr(settings, name).absolute())
    return kept
