"""The one door: tune a model and return the verdict."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from smart_tuner.samplers.registry import make_sampler
from smart_tuner.storages.history import finished_trials
from smart_tuner.storages.journal import open_study, prepare_journal
from smart_tuner.study.bare import bare_gain
from smart_tuner.study.budget import Budget
from smart_tuner.study.confirm import confirm
from smart_tuner.study.events import Note, PhaseStarted, silent
from smart_tuner.study.folder import StudyFolder
from smart_tuner.study.fresh import FreshBuilder, fixed_rule
from smart_tuner.study.plan import make_plan
from smart_tuner.study.result import read_result, write_result
from smart_tuner.study.search import SPENT, Search, frozen_baseline_ms
from smart_tuner.study.session import open_session
from smart_tuner.study.settings import StudySettings, make_settings
from smart_tuner.study.verdict import Evidence, decide
from smart_tuner.study.winner import ship
from smart_tuner.trial.verdict import describe_losses

if TYPE_CHECKING:
    from pathlib import Path

    import optuna

    from smart_tuner.storages.history import TrialRecord
    from smart_tuner.study.confirm import Confirmed
    from smart_tuner.study.events import Listener
    from smart_tuner.study.result import TuneResult
    from smart_tuner.study.session import Session

STUDY_NAME = "smart_tuner"


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
    chosen = (
        model if isinstance(model, StudySettings) else make_settings({**settings, "model": model})
    )
    budget = Budget(chosen.budget, chosen.trials)
    listener(PhaseStarted("prepare", "Reading the model and finding the knobs"))
    plan = make_plan(chosen)
    folder = StudyFolder(chosen.folder)
    with open_session(plan, folder, listener) as session:
        return _run(session, budget, listener)


def _run(session: Session, budget: Budget, listener: Listener) -> TuneResult:
    folder, settings = session.folder, session.plan.settings
    choices = session.plan.space.choices
    sampler = make_sampler(
        settings.sampler, choices, session.plan.space.defaults, seed=session.seed
    )
    if folder.journal.exists():
        for note in prepare_journal(folder.journal):
            listener(Note(note))
    study = open_study(folder.journal, STUDY_NAME, sampler, create=True)
    budget.spent_before = float(study.user_attrs.get(SPENT, 0.0))
    search = Search(
        study=study,
        folder=folder,
        evaluator=session.evaluator,
        choices=choices,
        weights=session.weights,
        baseline_ms=frozen_baseline_ms(study, session.baseline.median_ms, session.weights),
        trial_seconds=settings.trial_timeout,
        listener=listener,
    )
    search.recover()
    listener(PhaseStarted("search", f"Searching {len(choices)} knobs with {settings.sampler!r}"))
    search.run(budget)
    return _conclude(session, search, budget)


def _conclude(session: Session, search: Search, budget: Budget) -> TuneResult:
    """Confirm finalists and write the verdict, unless the one at hand is still good."""
    folder, settings = session.folder, session.plan.settings
    records = finished_trials(search.study)
    kept = _kept_result(session, records)
    if kept is not None:
        return kept
    builder = FreshBuilder(
        evaluator=session.evaluator,
        folder=folder.engines / "finalists",
        weights=session.weights,
        budget=budget,
        rule=fixed_rule(search.baseline_ms, budget.finalist_seconds),
        listener=search.listener,
    )
    builder.clear()
    confirmed = confirm(records, builder, search.baseline_ms, settings.min_gain)
    evidence = Evidence(
        study=folder.root,
        records=records,
        confirmed=confirmed,
        bare_gain=bare_gain(session, confirmed, builder) if confirmed else None,
        held_out_failure=_held_out_failure(session, confirmed),
        synthetic=any(point.synthetic for point in session.workload.points),
        min_gain=settings.min_gain,
        max_regression=settings.max_regression,
        spent_seconds=budget.spent,
        notes=session.notes,
    )
    result = decide(evidence)
    if result.route and confirmed is not None:
        ship(folder.winner, confirmed.engine, confirmed.last.trial.losses, session.plan, result)
    else:
        folder.remove_winner()
    builder.clear()
    _remember(search.study, budget)
    result = dataclasses.replace(result, spent_seconds=budget.spent)
    write_result(folder.result_file, result)
    return result


def _kept_result(session: Session, records: tuple[TrialRecord, ...]) -> TuneResult | None:
    """An earlier verdict, if no trial came after it and its limits are those of today."""
    path = session.folder.result_file
    if not path.is_file():
        return None
    kept = read_result(path)
    same = (
        sum(kept.trials.values()) == len(records)
        and kept.min_gain == session.plan.settings.min_gain
    )
    return kept if same else None


def _held_out_failure(session: Session, confirmed: Confirmed | None) -> str:
    """Why the winner fails on held-out inputs; empty if it does not, or there are none."""
    if confirmed is None:
        return ""
    log = session.folder.engines / "held_out.log"
    losses = session.evaluator.held_out_losses(confirmed.last.trial, log)
    log.unlink(missing_ok=True)
    return describe_losses(losses)


def _remember(study: optuna.Study, budget: Budget) -> None:
    study.set_user_attr(SPENT, budget.spent)
