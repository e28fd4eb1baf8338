"""One session of a study: the folder held, inputs ready, the baseline known, the journal open."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import math
import secrets
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smart_tuner import __version__
from smart_tuner.errors import StudyMismatch, UserInputError
from smart_tuner.model.files import write_json
from smart_tuner.model.prepare import prepare_workload
from smart_tuner.model.store import read_workload, workload_differences
from smart_tuner.study.events import Note, PhaseStarted
from smart_tuner.study.identity import check_identity
from smart_tuner.study.plan import AUTO, requested_constraint
from smart_tuner.trial.evaluate import Evaluator
from smart_tuner.trial.trial import TrialOutcome
from smart_tuner.trial.verdict import describe_losses
from smart_tuner.validate.constraint import constraint_from_json, constraint_to_json
from smart_tuner.validate.losses import worst

if TYPE_CHECKING:
    from collections.abc import Iterator

    from smart_tuner.model.workload import Workload
    from smart_tuner.study.events import Listener
    from smart_tuner.study.folder import StudyFolder
    from smart_tuner.study.plan import Plan
    from smart_tuner.trial.evaluate import BaselineReport
    from smart_tuner.validate.constraint import AccuracyConstraint

AUTO_FACTOR = 2.0
"""``--epsilon auto``: so many times the baseline's own loss, output by output."""

AUTO_FLOOR = 1e-6
"""The epsilon of an output that the baseline reproduces exactly."""


@dataclass(frozen=True, slots=True)
class Session:
    """What the search needs.

    Attributes:
        plan: What was decided.
        folder: The study folder, held by this process.
        workload: Points and reference pairs, all on disk.
        evaluator: Tries routes.
        baseline: What the baseline is like.
        constraint: The accuracy constraint, every epsilon a number.
        seed: Seed of the sampler.
        notes: What the user should hear, for the result as well.
    """

    plan: Plan
    folder: StudyFolder
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
    is_new = not folder.root.exists()
    folder.create()
    try:
        with folder.locked():
            yield from _opened(plan, folder, listener)
    finally:
        if not folder.exists:
            _discard(folder, is_new=is_new)


def _opened(plan: Plan, folder: StudyFolder, listener: Listener) -> Iterator[Session]:
    folder.remove_leftovers()
    document = folder.read_settings() if folder.exists else None
    seed = _seed(plan, document)
    listener(PhaseStarted("prepare", f"Preparing {plan.model.path.name}"))
    if document is None:
        workload, input_notes = prepare_workload(plan.model, plan.inputs(seed), folder.references)
    else:
        check_identity(document.get("identity", {}), plan.identity, folder.root)
        workload, input_notes = _same_workload(plan, folder, seed)
    notes = [*plan.notes, *input_notes]
    constraint = _constraint(plan, document)
    listener(PhaseStarted("baseline", "Building and checking the baseline"))
    if document is None and AUTO in plan.settings.epsilon:
        constraint = _automatic(plan, workload, folder, constraint)
        notes.append(_automatic_note(constraint))
    with _evaluator(plan, workload, folder, constraint) as evaluator:
        evaluator.make_references()
        baseline = evaluator.check_baseline()
        notes += baseline.notes
        _check_baseline(baseline, constraint)
        if document is None:
            _write_start(plan, folder, seed, constraint)
        for note in notes:
            listener(Note(note))
        yield Session(plan, folder, workload, evaluator, baseline, constraint, seed, tuple(notes))


def _evaluator(
    plan: Plan, workload: Workload, folder: StudyFolder, constraint: AccuracyConstraint
) -> Evaluator:
    return Evaluator(workload, plan.options_with(constraint), folder.engines)


def _seed(plan: Plan, document: dict[str, Any] | None) -> int:
    """The study's seed: given, kept from the first session, or drawn once."""
    kept = None if document is None else document.get("seed")
    given = plan.settings.seed
    if isinstance(kept, int):
        if given is not None and given != kept:
            msg = f"The study was started with seed {kept}: leave --seed out, or start another."
            raise StudyMismatch(msg)
        return kept
    return secrets.randbelow(2**31) if given is None else given


def _same_workload(plan: Plan, folder: StudyFolder, seed: int) -> tuple[Workload, tuple[str, ...]]:
    """Prepare the inputs again elsewhere and compare; the study's own files are used.

    Raises:
        StudyMismatch: Inputs, trusted outputs, shapes or weights changed.
    """
    with tempfile.TemporaryDirectory() as place:
        again = Path(place) / "references"
        _, notes = prepare_workload(plan.model, plan.inputs(seed), again)
        differing = workload_differences(folder.references, again)
    if differing:
        msg = (
            f"The study in {folder.root} cannot be continued: {'; '.join(differing)}. Restore what "
            "changed, or start a new study with --study OTHER_FOLDER."
        )
        raise StudyMismatch(msg)
    return read_workload(plan.model, folder.references), notes


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
        f"({constraint.metric}) on pair {loss.pair}, allowed is {loss.epsilon:g}. Either take "
        f"{AUTO_FACTOR:g} times the baseline's loss (--metric {constraint.metric} --epsilon auto), "
        "or judge routes against the baseline (--reference baseline)."
    )
    raise UserInputError(msg)


def _write_start(
    plan: Plan, folder: StudyFolder, seed: int, constraint: AccuracyConstraint
) -> None:
    """Write the platform, then ``study.toml``: with it the study exists."""
    write_json(folder.platform_file, dataclasses.asdict(plan.platform))
    now = datetime.datetime.now(datetime.timezone.utc)
    folder.write_settings(
        {
            "created": now.isoformat(timespec="seconds"),
            "smart_tuner": __version__,
            "seed": seed,
            "settings": plan.settings.model_dump(mode="json", exclude={"study", "seed"}),
            "identity": plan.identity,
            "accuracy": constraint_to_json(constraint),
            "base": dict(plan.base),
        }
    )


def _discard(folder: StudyFolder, *, is_new: bool) -> None:
    """Remove what a study that could not start has made."""
    if is_new:
        shutil.rmtree(folder.root, ignore_errors=True)
        return
    for path in (folder.references, folder.engines):
        shutil.rmtree(path, ignore_errors=True)
    for path in (folder.platform_file, folder.root / ".lock"):
        path.unlink(missing_ok=True)
