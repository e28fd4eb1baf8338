"""The one door: tune a model and return the verdict."""

from __future__ import annotations

import dataclasses
import shutil
from typing import TYPE_CHECKING, Any

from smart_tuner.devices.shares import settled
from smart_tuner.errors import StudyMismatch, TrialError, UserInputError
from smart_tuner.knobs.text import many
from smart_tuner.measure.goal import Goal
from smart_tuner.samplers.registry import make_sampler
from smart_tuner.storages.history import finished_trials
from smart_tuner.storages.journal import prepare_journal
from smart_tuner.storages.leases import new_worker_name
from smart_tuner.study.files.attach import attach_winner
from smart_tuner.study.files.folder import StudyFolder
from smart_tuner.study.files.kept import open_kept_study, storage_of_settings
from smart_tuner.study.files.names import SPENT
from smart_tuner.study.files.prior import check_prior, study_beliefs
from smart_tuner.study.files.runs import keep_runs
from smart_tuner.study.files.writable import writable
from smart_tuner.study.progress.budget import BUILDS_A_ROUND, Budget
from smart_tuner.study.progress.crew import Crew
from smart_tuner.study.progress.events import Note, PhaseStarted, silent
from smart_tuner.study.proof.bare import bare_gain
from smart_tuner.study.proof.confirm import confirm, short_of_confirming
from smart_tuner.study.proof.fresh import FreshBuilder, fixed_rule
from smart_tuner.study.proof.result import Verdict, read_result, write_result
from smart_tuner.study.proof.verdict import Evidence, decide
from smart_tuner.study.proof.winner import read_manifest, ship
from smart_tuner.study.proof.wording import within_words
from smart_tuner.study.search.first import queue_first
from smart_tuner.study.search.noise import note_baseline_noise
from smart_tuner.study.search.reuse import measured_trials
from smart_tuner.study.search.sensitivity import queue_sensitivity
from smart_tuner.study.search.timing_cache import sharing_note
from smart_tuner.study.search.together import make_search, search_together
from smart_tuner.study.session import open_session
from smart_tuner.study.setup.plan import make_plan
from smart_tuner.study.setup.settings import StudySettings, make_settings
from smart_tuner.trial.verdict import describe_error, describe_losses

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from smart_tuner.devices.shares import Place
    from smart_tuner.storages.history import TrialRecord
    from smart_tuner.study.progress.events import Listener
    from smart_tuner.study.proof.confirm import Confirmed
    from smart_tuner.study.proof.result import TuneResult
    from smart_tuner.study.search.search import Search
    from smart_tuner.study.session import Session


def tune(
    model: str | Path | StudySettings, *, listener: Listener = silent, **settings: Any
) -> TuneResult:
    """Find the fastest acceptable route of a model within a budget, and prove it.

    Args:
        model: Path of an ONNX model, ``public:NAME``, or complete settings.
        listener: Hears what happens, event by event.
        **settings: Fields of ``StudySettings``, e.g. ``budget="10m", epsilon=("0.01",)``.

    Returns:
        The verdict. The study folder holds everything behind it.

    Raises:
        UserInputError: A setting, a file or the model is wrong; nothing was begun.
        StudyMismatch: The folder holds a study of something else.
        EnvironmentNotFit: This machine lacks something.
        KeyboardInterrupt: Ctrl-C; the study is kept, and the same call continues it.
    """
    if isinstance(model, StudySettings) and settings:
        msg = f"Complete settings leave no room for others: {', '.join(settings)}."
        raise UserInputError(msg)
    chosen = (
        model if isinstance(model, StudySettings) else make_settings({**settings, "model": model})
    )
    budget = Budget(chosen.budget, chosen.trials)
    listener(PhaseStarted("prepare", "Reading the model and finding the knobs"))
    folder = StudyFolder(chosen.folder)
    chosen = _kept_where_it_was(chosen, folder)
    here, *others = chosen.places
    with settled(here):
        plan = make_plan(chosen)
        # Refuses an unknown sampler before anything is made.
        make_sampler(chosen.sampler, plan.space.choices, plan.space.defaults, seed=0)
        check_prior(chosen.prior, chosen.sampler)
        with (
            writable(folder, chosen.storage),
            open_session(plan, folder, listener) as session,
        ):
            return _run(session, budget, listener, others)


def _kept_where_it_was(chosen: StudySettings, folder: StudyFolder) -> StudySettings:
    """Go on with the storage that a study began with; a database may have moved.

    Raises:
        StudyMismatch: The study began in its folder.
    """
    if not folder.exists:
        return chosen
    begun = storage_of_settings(folder.read_settings())
    if chosen.storage and not begun:
        msg = (
            f"The trials of {folder.root} are kept in the folder itself: leave out --storage, or "
            "start a new study with --study OTHER_FOLDER."
        )
        raise StudyMismatch(msg)
    return chosen.model_copy(update={"storage": chosen.storage or begun or None})


def _run(
    session: Session, budget: Budget, listener: Listener, others: Sequence[Place]
) -> TuneResult:
    folder, settings = session.folder, session.plan.settings
    space = session.space
    sampler = make_sampler(
        settings.sampler,
        space.choices,
        space.defaults,
        seed=session.seed,
        beliefs=study_beliefs(folder, space, session.plan.model),
    )
    if folder.journal.exists():
        for note in prepare_journal(folder.journal):
            listener(Note(note))
    study = open_kept_study(folder, sampler, create=True)
    budget.spent_before = float(study.user_attrs.get(SPENT, 0.0))
    search = make_search(session, study, Crew(new_worker_name(), leads=True), listener)
    note_baseline_noise(study, session.baseline.trial, session.weights)
    search.recover()
    for line in queue_first(study, settings.first, space.choices):
        listener(Note(line))
    queue_sensitivity(study, space, _trial_seconds(session), budget.seconds)
    if session.evaluator.timing_cache is not None and session.baseline.trial.engine:
        budget.cold_build_seconds = session.baseline.trial.engine.build_seconds
    if settings.reuse:
        known = measured_trials(session, settings.reuse)
        session.evaluator.take_for_tried(known)
        listener(
            Note(f"{many(len(known), 'trial')} of other studies can count here, for their routes")
        )
    text = f"Searching {many(len(space.choices), 'knob')} with {settings.sampler!r}"
    listener(PhaseStarted("search", text, budget.spent))
    search_together(search, budget, others)
    return _conclude(session, search, budget)


def _trial_seconds(session: Session) -> float:
    """What a trial takes, going by the baseline."""
    seconds = session.baseline.trial.seconds
    return seconds.get("build", 0.0) + seconds.get("measure", 0.0)


def _conclude(session: Session, search: Search, budget: Budget) -> TuneResult:
    """Confirm finalists and write the verdict, unless the one at hand is still good."""
    folder, settings = session.folder, session.plan.settings
    records = finished_trials(search.study)
    kept = _kept_result(session, records)
    if kept is not None:
        return kept
    builder = FreshBuilder(
        evaluator=session.evaluator,
        folder=folder.finalists,
        weights=session.weights,
        budget=budget,
        rule=fixed_rule(search.baseline_ms, budget.finalist_seconds, session.plan.goal),
        listener=search.listener,
        expected_seconds=BUILDS_A_ROUND * budget.cold_build_seconds,
    )
    offered = tuple(item for item in records if not session.missing & {*item.route.settings})
    wanted = (offered, builder, search.baseline_ms, settings.min_gain)
    short = short_of_confirming(*wanted)
    confirmed = None if short else confirm(*wanted)
    ships = confirmed is not None and confirmed.ships(settings.min_gain, settings.max_regression)
    evidence = Evidence(
        study=folder.root,
        records=records,
        confirmed=confirmed,
        bare_gain=bare_gain(session, confirmed, builder) if confirmed and ships else None,
        held_out_failure=_held_out_failure(session, confirmed) if confirmed and ships else "",
        synthetic=any(point.synthetic for point in session.workload.points),
        min_gain=settings.min_gain,
        max_regression=settings.max_regression,
        spent_seconds=budget.spent,
        needed_seconds=budget.seconds + short if short else 0.0,
        notes=(*session.notes, *sharing_note(search.study)),
        measured="" if session.plan.goal == Goal() else session.plan.goal.words,
        within=within_words(folder.read_settings()["accuracy"]),
        rebuilt=builder.best,
    )
    return _publish(session, search, decide(evidence), budget, confirmed)


def _publish(
    session: Session,
    search: Search,
    result: TuneResult,
    budget: Budget,
    confirmed: Confirmed | None,
) -> TuneResult:
    """Ship what won and write the verdict; a kill in between leaves a study without verdict."""
    folder = session.folder
    folder.result_file.unlink(missing_ok=True)
    if result.verdict is Verdict.WINNER and confirmed is not None:
        ship(session, confirmed.shipped, result)
        if session.plan.settings.storage is not None:
            attach_winner(search.study, folder)
    else:
        folder.remove_winner()
    keep_runs(folder)
    shutil.rmtree(folder.finalists, ignore_errors=True)
    search.study.set_user_attr(SPENT, budget.spent)
    result = dataclasses.replace(result, spent_seconds=budget.spent)
    write_result(folder.result_file, result)
    return result


def _kept_result(session: Session, records: tuple[TrialRecord, ...]) -> TuneResult | None:
    """An earlier verdict that is still good.

    No trial came after it, its limits are those of today, what it shipped is there, whole, and
    it was not left undecided for want of time to confirm.
    """
    folder, settings = session.folder, session.plan.settings
    try:
        kept = read_result(folder.result_file)
        if kept.verdict is Verdict.WINNER:
            read_manifest(folder.winner)
    except UserInputError:
        return None
    is_same = (
        not (kept.verdict is Verdict.UNDECIDED and len(records) > 1)
        and sum(kept.trials.values()) == len(records)
        and kept.min_gain == settings.min_gain
        and kept.max_regression == settings.max_regression
    )
    return kept if is_same else None


def _held_out_failure(session: Session, confirmed: Confirmed) -> str:
    """Why the winner fails on held-out inputs; empty if it does not, or there are none."""
    log = session.folder.finalists / "held_out.log"
    try:
        losses = session.evaluator.held_out_losses(confirmed.shipped.trial, log)
    except TrialError as error:
        return describe_error(error, "validate")
    return describe_losses(losses)
