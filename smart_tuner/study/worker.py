"""A worker: joins a study that a session began, and tries routes until the search is over."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from smart_tuner.devices.shares import crew_pids
from smart_tuner.errors import StudyMismatch
from smart_tuner.model.store import read_workload
from smart_tuner.samplers.registry import make_sampler
from smart_tuner.storages.history import FINISHED
from smart_tuner.storages.keys import WORKER
from smart_tuner.storages.leases import Lease, new_worker_name
from smart_tuner.study.files.admission import baseline_notes, check_admission
from smart_tuner.study.files.kept import open_kept_study, storage_of_settings
from smart_tuner.study.files.names import SPENT
from smart_tuner.study.files.prior import study_beliefs
from smart_tuner.study.files.resume import check_same
from smart_tuner.study.files.writable import writable
from smart_tuner.study.progress.budget import Budget
from smart_tuner.study.progress.crew import STOP, Crew
from smart_tuner.study.progress.events import Note, PhaseStarted
from smart_tuner.study.search.together import make_search
from smart_tuner.study.session import DECIDED, REFEREE, Session
from smart_tuner.study.setup.plan import make_plan, query_platform
from smart_tuner.study.setup.settings import make_settings
from smart_tuner.trial.evaluate import Evaluator
from smart_tuner.validate.constraint import constraint_from_json

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import optuna

    from smart_tuner.study.files.folder import StudyFolder
    from smart_tuner.study.progress.events import Listener

LOOK_SECONDS = 0.5
"""How often a worker looks whether the process that started it is still there."""


@dataclass(frozen=True, slots=True)
class Shift:
    """What one worker did.

    Attributes:
        worker: Its name.
        trials: Finished trials of its own.
        why: Why it left: what the study says, or that there was nothing left to do.
    """

    worker: str
    trials: int
    why: str


def work(folder: StudyFolder, listener: Listener, storage: str | None = None) -> Shift:
    """Join the study in a folder and try routes until its search is over.

    The baseline is built and measured here anew: a route's value is the study's baseline times
    the ratio that was seen on one device, so values of all workers compare.

    Args:
        folder: The study folder, begun by a session of ``tune``.
        listener: Hears what happens.
        storage: Another address of the study's database, as seen from here.

    Raises:
        UserInputError: There is no study.
        StudyMismatch: This machine's platform, or its model, is not the study's.
        EnvironmentNotFit: This machine lacks something, or the study cannot be written.
    """
    name = new_worker_name()
    url = storage or storage_of_settings(folder.read_settings())
    with _ended_with_parent(), writable(folder, url):
        study = open_kept_study(folder, storage=storage)
        if over := str(study.user_attrs.get(STOP) or ""):
            return Shift(name, 0, f"{over}; `smart-tuner tune` goes on with it")
        # The lease comes first: it is what the folder is known to be in use by.
        with (
            Lease(study, name),
            _own_folder(folder, name) as place,
            _joined(folder, place, listener) as session,
        ):
            return _search(session, study, name, listener)


def _search(session: Session, study: optuna.Study, name: str, listener: Listener) -> Shift:
    settings, space = session.plan.settings, session.space
    study.sampler = make_sampler(
        settings.sampler,
        space.choices,
        space.defaults,
        seed=session.seed,
        beliefs=study_beliefs(session.folder, space, session.plan.model),
    )
    spent = float(study.user_attrs.get(SPENT, 0.0))
    budget = Budget(settings.budget, settings.trials, spent_before=spent)
    search = make_search(session, study, Crew(name), listener)
    if session.evaluator.timing_cache is not None and session.baseline.trial.engine:
        budget.cold_build_seconds = session.baseline.trial.engine.build_seconds
    listener(PhaseStarted("search", f"Searching as {name}", budget.spent))
    search.run(budget)
    mine = study.get_trials(deepcopy=False, states=FINISHED)
    count = sum(trial.user_attrs.get(WORKER) == name for trial in mine)
    return Shift(name, count, str(study.user_attrs.get(STOP) or "nothing is left to try"))


@contextlib.contextmanager
def _joined(folder: StudyFolder, place: Path, listener: Listener) -> Iterator[Session]:
    """A session in a study that another process leads; nothing of the study is changed."""
    document = folder.read_settings()
    kept = {**document["settings"], "study": str(folder.root)}
    plan = make_plan(make_settings(kept))
    listener(PhaseStarted("prepare", f"Joining the study of {plan.model.path.name}"))
    platform = query_platform(plan.settings.backend, place)
    try:
        continued = check_same(plan, platform, document, folder)
    except StudyMismatch as error:
        reason = str(error).partition(": ")[2].partition(". Restore")[0]
        msg = (
            f"This worker cannot join the study in {folder.root}: {reason}. Only like platforms "
            "work on one study; begin another one here with `smart-tuner tune`."
        )
        raise StudyMismatch(msg) from error
    workload = read_workload(plan.model, folder.references)
    plan = plan.with_lowered(workload, folder.precision)
    constraint = constraint_from_json(document["accuracy"])
    decided = dict(document.get(DECIDED, {}))
    listener(PhaseStarted("baseline", "Building and measuring the baseline on this device"))
    with Evaluator(workload, plan.options_with(constraint, decided), place) as evaluator:
        baseline = evaluator.check_baseline(plan.goal.search_rule)
        check_admission(baseline, constraint, plan.goal)
        notes = (*continued.notes, *baseline.notes, *baseline_notes(baseline))
        for note in notes:
            listener(Note(note))
        yield Session(
            plan=plan,
            folder=folder,
            platform=platform,
            space=continued.space,
            missing=continued.missing,
            workload=workload,
            evaluator=evaluator,
            baseline=baseline,
            constraint=constraint,
            decided=decided,
            referee=str(document.get(REFEREE, "")),
            seed=int(document["seed"]),
            notes=notes,
        )


@contextlib.contextmanager
def _own_folder(folder: StudyFolder, name: str) -> Iterator[Path]:
    """A folder for this worker's baseline and logs, gone afterwards."""
    place = folder.workers / name
    place.mkdir(parents=True)
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


@contextlib.contextmanager
def _ended_with_parent() -> Iterator[None]:
    """End, as SIGTERM would have it, when the session that started this worker is gone."""
    if not crew_pids():
        yield
        return
    over = threading.Event()

    def watch() -> None:
        while not over.wait(LOOK_SECONDS):
            if os.getppid() not in crew_pids():
                os.kill(os.getpid(), signal.SIGTERM)
                return

    thread = threading.Thread(target=watch, name="parent", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
