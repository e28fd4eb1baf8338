"""The prior of a study: chosen once, kept in its folder, so that a later session goes on exactly."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from smart_tuner.errors import UserInputError
from smart_tuner.priors.distance import LEAST_WEIGHT, Nearness, Target
from smart_tuner.priors.document import Network, StudyEntry
from smart_tuner.priors.files import prior_digest, read_prior, write_prior
from smart_tuner.priors.found import said_and_found
from smart_tuner.priors.gather import AUTO, AUTO_FOLDER, check_asked, gather
from smart_tuner.priors.observed import ObservedStudy
from smart_tuner.priors.relevance import relevance_version, unlikely
from smart_tuner.priors.sources import BASELINE_MS, network_of, observation
from smart_tuner.priors.use import Believed, believe, doubt, weigh
from smart_tuner.storages.history import finished_trials
from smart_tuner.study.files.folder import StudyFolder
from smart_tuner.study.files.kept import open_kept_study

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from smart_tuner.engine.platform import Platform
    from smart_tuner.knobs.space import SearchSpace
    from smart_tuner.model.spec import ModelSpec
    from smart_tuner.priors.found import SaidAndFound
    from smart_tuner.samplers.route_sampler.beliefs import Beliefs
    from smart_tuner.study.setup.plan import Plan
    from smart_tuner.validate.constraint import AccuracyConstraint

PRIOR, NETWORK = "prior", "network"
"""Sections of ``study.toml``: the prior that the study began with, and what it tunes."""

PRIOR_FILE = "used.prior.toml"
"""What the study takes from its prior, in its folder: brought to its own knobs and defaults."""

DEFAULT_SAMPLER = "default"


def check_prior(asked: Sequence[str], sampler: str) -> None:
    """Refuse a prior that cannot be used, before anything is built.

    Raises:
        UserInputError: A file is missing or is no prior, or the sampler cannot begin from one.
    """
    if asked and sampler != DEFAULT_SAMPLER:
        msg = (
            f"--prior works with the default sampler, not with --sampler {sampler}: leave one of "
            "them out."
        )
        raise UserInputError(msg)
    check_asked(asked)


def named_priors(asked: Sequence[str]) -> list[str]:
    """What was asked for, files by absolute path: it means the same from any folder."""
    return [text if text == AUTO else str(Path(text).expanduser().absolute()) for text in asked]


def network_facts(model: ModelSpec) -> dict[str, Any]:
    """What a study keeps of its network, so that later ones can tell how near it is."""
    network = Network.of("", "", model.size_bytes, model.operators)
    return {"size_bytes": network.size_bytes, "operators": network.operators}


def begin_prior(
    plan: Plan, platform: Platform, constraint: AccuracyConstraint, folder: StudyFolder
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Choose the prior of a new study and write it into the folder.

    Returns:
        What ``study.toml`` keeps of it, empty without a prior; and what the user should hear.

    Raises:
        UserInputError: A file cannot be read.
    """
    asked = plan.settings.prior
    if not asked:
        return {}, ()
    target = target_of(plan, platform, constraint)
    found = gather(
        asked,
        target,
        plan.space.choices,
        folders=(Path(AUTO_FOLDER), folder.root.parent),
        without=folder.root,
    )
    studies = weigh(found.prior, target)
    write_prior(folder.root / PRIOR_FILE, found.prior)
    idle = unlikely(plan.space.choices, plan.model.operators)
    used = [near for near in studies if near.weight >= LEAST_WEIGHT]
    sentences = [f"prior: {near.sentence}." for near in studies]
    if idle:
        sentences.append(
            f"prior: {len(idle)} knobs concern operators that this network lacks; they are tried "
            "later."
        )
    kept = {
        "asked": named_priors(asked),
        "sha256": prior_digest(found.prior),
        "relevance": relevance_version(),
        "weights": {near.study.id: near.weight for near in used},
        "reasons": {near.study.id: list(near.reasons) for near in used},
    }
    return {PRIOR: kept}, (*sentences, *found.notes)


def target_of(plan: Plan, platform: Platform, constraint: AccuracyConstraint) -> Target:
    """A study that is to begin, as far as nearness goes."""
    return Target(
        backend=plan.settings.backend,
        backend_version=platform.backend_version,
        tuner_version=platform.tuner_version,
        device=platform.device,
        metric=constraint.metric,
        epsilon=repr(constraint.epsilon),
        objective=plan.goal.objective,
        network=Network.of(
            plan.model.path.name,
            plan.model.sha256,
            plan.model.size_bytes,
            plan.model.operators,
        ),
    )


def believed(
    document: Mapping[str, Any], folder: Path, operators: Mapping[str, int]
) -> Believed | None:
    """What a study began with, read back from its folder; ``None`` without a prior.

    Args:
        document: Its ``study.toml``.
        folder: The study folder.
        operators: How often each operator occurs in its network.

    Raises:
        UserInputError: The prior in the folder is missing, or is not the one the study began with.
    """
    kept = document.get(PRIOR)
    if not isinstance(kept, dict):
        return None
    path = folder / PRIOR_FILE
    prior = read_prior(path)
    if prior_digest(prior) != kept.get("sha256"):
        msg = (
            f"{path} is not the prior that this study began with: restore it, or start a new study "
            "with --study OTHER_FOLDER."
        )
        raise UserInputError(msg)
    weights = kept.get("weights", {})
    reasons = kept.get("reasons", {})
    studies = tuple(
        Nearness(study, float(weights.get(study.id, 0.0)), tuple(reasons.get(study.id, ())))
        for study in prior.studies
    )
    return believe(prior, studies, unlikely(prior.knobs, operators))


def study_beliefs(folder: StudyFolder, space: SearchSpace, model: ModelSpec) -> Beliefs | None:
    """Beliefs that the search of a study begins from; the same in each of its sessions.

    Raises:
        UserInputError: The prior in the folder is missing, or is not the one the study began with.
    """
    document = folder.read_settings()
    found = believed(document, folder.root, model.operators)
    if found is None:
        return None
    doubts = doubt(space.choices, unlikely(space.choices, model.operators))
    return type(doubts)({**doubts.values, **found.beliefs.values}, found.beliefs.routes)


def prior_outcome(root: Path) -> tuple[SaidAndFound, ...]:
    """What the prior of a finished study said of each value, and what the study found.

    Args:
        root: The study folder.

    Returns:
        What was promised most first; nothing if the study began without a prior.

    Raises:
        UserInputError: There is no study, or its prior is damaged.
    """
    folder = StudyFolder(root)
    document = folder.read_settings()
    found = believed(document, root, network_of(document).operators)
    if found is None:
        return ()
    study = open_kept_study(folder, None)
    baseline = float(study.user_attrs[BASELINE_MS])
    records = finished_trials(study)
    observed = ObservedStudy(
        StudyEntry(id="this", name=root.name[:300]),
        {name: tuple(choices) for name, choices in document["space"].items()},
        tuple(observation(record, baseline) for record in records),
    )
    return said_and_found(found.folded.values, observed)


def prior_notes(document: Mapping[str, Any], asked: Sequence[str]) -> tuple[str, ...]:
    """What a user should hear who continues a study with another prior than it began with."""
    kept = document.get(PRIOR)
    before = kept.get("asked", []) if isinstance(kept, dict) else []
    notes = []
    if named_priors(asked) != list(before):
        began = f"with --prior {' '.join(map(str, before))}" if before else "without a prior"
        notes.append(f"prior: this study began {began}, and goes on so.")
    if isinstance(kept, dict) and kept.get("relevance") != relevance_version():
        notes.append(
            "prior: the rules on which knobs concern which operators changed since this study "
            "began; proposals may differ from those that it would have had."
        )
    return tuple(notes)
