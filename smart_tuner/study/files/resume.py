"""Whether the study in a folder is about the same thing as today's call."""

from __future__ import annotations

import contextlib
import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from smart_tuner.errors import UserInputError
from smart_tuner.knobs.space import SearchSpace
from smart_tuner.model.prepare import prepare_workload
from smart_tuner.model.store import read_workload, workload_differences
from smart_tuner.study.setup.identity import (
    CPU_QUOTA,
    KNOB_DATABASE,
    differences,
    platform_identity,
    refuse,
    space_differences,
    warnings,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from smart_tuner.engine.platform import Platform
    from smart_tuner.model.workload import Workload
    from smart_tuner.study.files.folder import StudyFolder
    from smart_tuner.study.setup.identity import Space
    from smart_tuner.study.setup.plan import Plan


@dataclass(frozen=True, slots=True)
class Continued:
    """A study that may go on.

    Attributes:
        space: The knobs as the study has always searched them.
        missing: Knob and value of what the study searches and today's machine does not offer.
        notes: What changed although the study goes on.
    """

    space: SearchSpace
    missing: frozenset[tuple[str, str]]
    notes: tuple[str, ...]


def check_same(
    plan: Plan, platform: Platform, document: Mapping[str, Any], folder: StudyFolder
) -> Continued:
    """Compare a study with today's model, settings, platform and knobs.

    When what may differ does, such as the CPU quota, so may the values that depend on it: the
    study goes on with its own, and says what it cannot try any more.

    Raises:
        StudyMismatch: Something else differs; names each thing, and the two ways out.
    """
    before: dict[str, str] = {**document["identity"], "seed": str(document["seed"])}
    seed = document["seed"] if plan.settings.seed is None else plan.settings.seed
    now = {**plan.identity, **platform_identity(platform), "seed": str(seed)}
    kept: Space = {name: tuple(choices) for name, choices in document["space"].items()}
    offered = plan.space.choices
    space: SearchSpace | None = None
    if before.get(CPU_QUOTA) != now.get(CPU_QUOTA):
        now[KNOB_DATABASE] = before.get(KNOB_DATABASE, "")
        space = _with_choices(plan.space, kept)
    found = differences(before, now)
    if space is None:
        found += space_differences(kept, offered)
    refuse(found, folder.root)
    missing = frozenset(
        (name, value)
        for name, choices in kept.items()
        for value in choices
        if value not in offered[name]
    )
    notes = (*warnings(before, now), *_missing_note(missing))
    return Continued(space or plan.space, missing, notes)


def same_workload(plan: Plan, folder: StudyFolder, seed: int) -> tuple[Workload, tuple[str, ...]]:
    """Prepare the inputs again elsewhere and compare; the study's own files are used.

    Raises:
        StudyMismatch: Inputs, trusted outputs, shapes or weights changed.
    """
    with folder.scratch() as place:
        _, notes = prepare_workload(plan.model, plan.inputs(seed), place)
        with _files_of_the_study():
            found = workload_differences(folder.references, place)
    refuse(found, folder.root)
    with _files_of_the_study():
        return read_workload(plan.model, folder.references), notes


@contextlib.contextmanager
def _files_of_the_study() -> Iterator[None]:
    """Say the way out when a file of the study itself is missing or damaged."""
    try:
        yield
    except UserInputError as error:
        msg = f"{error} Or start a new study with --study OTHER_FOLDER."
        raise UserInputError(msg) from None


def _with_choices(space: SearchSpace, kept: Space) -> SearchSpace | None:
    """The space with the study's own choices; ``None`` if knobs or defaults differ."""
    if {name: choices[0] for name, choices in kept.items()} != space.defaults:
        return None
    knobs = {knob.name: knob for knob in space.knobs}
    return SearchSpace(
        tuple(dataclasses.replace(knobs[name], values=choices) for name, choices in kept.items())
    )


def _missing_note(missing: frozenset[tuple[str, str]]) -> tuple[str, ...]:
    if not missing:
        return ()
    routes = ", ".join(f"-{name}={value}" for name, value in sorted(missing))
    return (f"this machine does not offer {routes} any more: such routes count as not applied.",)
