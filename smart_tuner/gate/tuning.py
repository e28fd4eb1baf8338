"""A budgeted study, begun with what the last one found, laid out as an entry of a store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import optuna

from smart_tuner.errors import UserInputError
from smart_tuner.gate.archive import STUDY, Finished, prepare_entry
from smart_tuner.gate.facts import collect_facts
from smart_tuner.gate.store import Kept
from smart_tuner.model.prepare import prepare_workload
from smart_tuner.priors.build import build_prior
from smart_tuner.priors.sources import observe_study
from smart_tuner.report.page import write_report
from smart_tuner.study.files.folder import StudyFolder
from smart_tuner.study.files.prior import DEFAULT_SAMPLER
from smart_tuner.study.session import DECIDED
from smart_tuner.study.setup.plan import make_plan, query_platform
from smart_tuner.study.tune import tune
from smart_tuner.trial.arm import RemoteArm
from smart_tuner.trial.baseline import build_request
from smart_tuner.validate.constraint import constraint_from_json

if TYPE_CHECKING:
    from pathlib import Path

    from smart_tuner.engine.platform import Platform
    from smart_tuner.gate.documents import Entry
    from smart_tuner.gate.facts import Facts
    from smart_tuner.model.workload import Workload
    from smart_tuner.study.progress.events import Listener
    from smart_tuner.study.setup.plan import Plan
    from smart_tuner.study.setup.settings import StudySettings


@dataclass(frozen=True, slots=True)
class Today:
    """What a pipeline runs on today.

    Attributes:
        plan: Model, knobs, base and accuracy; its seed is fixed, so that inputs stay the same.
        platform: Where it runs.
        workload: Points and inputs.
        facts: Everything that an engine depends on.
    """

    plan: Plan
    platform: Platform
    workload: Workload
    facts: Facts


def look(settings: StudySettings, place: Path) -> Today:
    """Read the model and ask the backend; nothing is built.

    Args:
        settings: The study's settings.
        place: Gets the prepared inputs.

    Raises:
        UserInputError: A setting, a file or the model is wrong.
        EnvironmentNotFit: The backend is missing or cannot work here.
    """
    plan = make_plan(settings.model_copy(update={"seed": settings.seed or 0}))
    platform = query_platform(settings.backend)
    workload, _ = prepare_workload(plan.model, plan.inputs(settings.seed or 0), place)
    return Today(plan, platform, workload, collect_facts(plan, platform, workload, place))


def tuned(today: Today, name: str, last: Kept | None, place: Path, listener: Listener) -> Kept:
    """Run the study and lay its outcome out as an entry, in a folder of our own.

    Args:
        today: What is tuned.
        name: The entry's name.
        last: The entry whose winner is tried first, and whose study is the prior; ``None`` for
            none.
        place: Gets the entry, and the study unless the settings name a folder for it.
        listener: Hears what happens.

    Raises:
        SmartTunerError: What ``tune`` raises.
    """
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    settings = today.plan.settings
    study = settings.study or place / "study"
    settings = settings.model_copy(update={"study": study, **_begun_with(settings, last)})
    result = tune(settings, listener=listener)
    folder = StudyFolder(settings.folder)
    write_report(folder.root)
    document = folder.read_settings()
    constraint = constraint_from_json(document.get("accuracy", {}))
    options = today.plan.options_with(constraint, document.get(DECIDED, {}))
    workdir = place / "default"
    workdir.mkdir()
    with RemoteArm(options, place / "default.log") as arm:
        default = arm.build(build_request(today.workload, options), workdir)
    finished = Finished(today.plan, folder, result, default, constraint)
    entry = prepare_entry(name, today.facts, finished, place / "entry")
    return Kept(entry, place / "entry", ())


def _begun_with(settings: StudySettings, last: Kept | None) -> dict[str, tuple[str, ...]]:
    """What the last study gives to this one, on top of what the user asked for."""
    if last is None:
        return {}
    given: dict[str, tuple[str, ...]] = {}
    if last.entry.candidate.route:
        given["first"] = (*settings.first, route_text(last.entry))
    if settings.sampler == DEFAULT_SAMPLER and teaches(last.folder / STUDY):
        given["prior"] = (*settings.prior, str(last.folder / STUDY))
    return given


def teaches(study: Path) -> bool:
    """Whether an archived study can be a prior; one that tried nothing but the default cannot."""
    try:
        build_prior([observe_study(study)])
    except UserInputError:
        return False
    return True


def route_text(entry: Entry) -> str:
    """The route that an entry ships, as text; empty for the default."""
    return " ".join(f"-{name}={value}" for name, value in entry.candidate.route)
