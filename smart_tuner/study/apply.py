"""One route, built, checked and measured: one honest trial without a study."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from smart_tuner.engine.build import LOADER_FILE
from smart_tuner.errors import EnvironmentNotFit, UserInputError
from smart_tuner.model.prepare import prepare_workload
from smart_tuner.model.scratch import scratch_folder
from smart_tuner.route.parse import parse_route
from smart_tuner.study.progress.events import Note
from smart_tuner.study.setup.plan import AUTO, make_plan
from smart_tuner.trial.evaluate import Evaluator
from smart_tuner.trial.trial import TrialOutcome

if TYPE_CHECKING:
    from pathlib import Path

    from smart_tuner.engine.build import Engine
    from smart_tuner.study.progress.events import Listener
    from smart_tuner.study.setup.settings import StudySettings
    from smart_tuner.trial.trial import Trial

PAIRS = 20
SEED = 0


def apply_route(
    settings: StudySettings, route: str, listener: Listener, out: Path | None = None
) -> Trial:
    """Build a route, check it, and measure it beside the baseline with a fixed sample size.

    Args:
        settings: As for a study; the budget does not count.
        route: Text such as ``-execution_mode=parallel``; empty for the default.
        listener: Hears notes.
        out: Folder that gets the engine and its loader; made if missing.

    Raises:
        UserInputError: A setting, the route or the model is wrong.
        EnvironmentNotFit: This machine lacks something, or ``out`` cannot be written.
    """
    if out is not None:
        _check_place(out)
    if AUTO in settings.epsilon:
        msg = "--epsilon auto is a multiple that `tune` measures: give `apply` a number."
        raise UserInputError(msg)
    plan = make_plan(settings)
    wanted = parse_route(route, plan.database)
    with scratch_folder() as place:
        seed = SEED if settings.seed is None else settings.seed
        workload, notes = prepare_workload(plan.model, plan.inputs(seed), place / "references")
        said = plan.precision.notes if plan.precision else ()
        for note in (*plan.model.notes, *said, *notes):
            listener(Note(note))
        plan = plan.with_lowered(workload, place / "precision")
        with Evaluator(workload, plan.evaluator_options, place) as evaluator:
            if made := evaluator.make_references().note:
                listener(Note(made))
            trial = evaluator.evaluate(wanted, place / "trial", plan.goal.fixed(PAIRS))
            if trial.outcome is TrialOutcome.INFEASIBLE:
                _say_if_random(evaluator, listener)
        if out is not None and trial.engine is not None:
            _copy(trial.engine, out)
    return trial


def _say_if_random(evaluator: Evaluator, listener: Listener) -> None:
    """Name the other reason for being over epsilon: a model that does not repeat itself."""
    notes = evaluator.repeatability()
    if notes:
        text = f"The model does not repeat itself: {' '.join(notes)} Fix its random seeds, or give"
        listener(Note(f"{text} a looser --epsilon."))


def _check_place(out: Path) -> None:
    """Refuse what could not be written later, before anything is built."""
    if out.exists() and not out.is_dir():
        msg = f"{out} is a file: name a folder with --out."
        raise UserInputError(msg)
    around = next(place for place in (out, *out.absolute().parents) if place.exists())
    if not around.is_dir() or not os.access(around, os.W_OK):
        msg = f"Cannot write to {out}: {around} allows no folder in it. Name another with --out."
        raise EnvironmentNotFit(msg)


def _copy(engine: Engine, out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
        shutil.copy2(engine.path, out / engine.path.name)
        for companion in engine.companions:
            shutil.copyfile(companion, out / companion.name)
        if engine.loader:
            (out / LOADER_FILE).write_text(engine.loader, encoding="utf-8")
    except OSError as error:
        msg = f"Cannot write to {out}: {error.strerror}. Name another folder with --out."
        raise EnvironmentNotFit(msg) from None
