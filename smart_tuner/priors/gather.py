"""From what a user names to one prior that fits the study at hand."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from smart_tuner.errors import SmartTunerError
from smart_tuner.knobs.text import clean_sentence
from smart_tuner.priors.align import align, compare_with
from smart_tuner.priors.build import NoEvidenceError, build_prior, merge_priors, only
from smart_tuner.priors.distance import nearness
from smart_tuner.priors.document import Prior
from smart_tuner.priors.files import read_prior
from smart_tuner.priors.neighbours import find_evidence, nearest_networks
from smart_tuner.priors.sources import is_study, observe_study
from smart_tuner.priors.use import checked_as

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from smart_tuner.priors.distance import Target
    from smart_tuner.priors.document import Network, StudyEntry
    from smart_tuner.priors.observed import ObservedStudy

AUTO = "auto"
AUTO_FOLDER = "studies"

NEAREST = 5
"""Studies that ``auto`` takes at most; a fifth neighbour rarely adds what four did not say."""

LOOKED_AT = 4 * NEAREST
WORTH_TAKING = 0.15
"""Weight below which ``auto`` leaves a study alone."""


@dataclass(frozen=True, slots=True)
class Gathered:
    """What was found.

    Attributes:
        prior: Aligned with the space; without studies if nothing was found.
        notes: What the user should hear of it.
    """

    prior: Prior
    notes: tuple[str, ...]


def gather(
    asked: Sequence[str],
    target: Target,
    choices: Mapping[str, tuple[str, ...]],
    *,
    folders: Sequence[Path] = (),
    without: Path | None = None,
) -> Gathered:
    """Read what was asked for and bring it to one space.

    Args:
        asked: Prior files, study folders, folders with several of them, or ``auto``.
        target: The study that is to begin.
        choices: Its choices by knob name, the default first.
        folders: Where ``auto`` looks.
        without: A study folder that is never taken.

    Raises:
        UserInputError: A file cannot be read or is no prior.
    """
    priors: list[Prior] = []
    notes: list[str] = []
    for text in asked:
        named = folders if text == AUTO else (Path(text).expanduser(),)
        single = None if text == AUTO else _single(named[0])
        if isinstance(single, NoEvidenceError):
            notes.append(f"prior: {single}")
            continue
        found = [single] if single else list(_nearest(named, target, without))
        where = " and ".join(clean_sentence(str(folder)) for folder in named)
        if not found:
            notes.append(f"prior: no study in {where} is near enough to this one.")
        priors += found
    notes += [f"prior: {said}." for said in compare_with(priors, choices).sentences]
    aligned = [checked_as(align(prior, choices), target) for prior in priors]
    defaults = {name: values[0] for name, values in choices.items()}
    return Gathered(merge_priors(aligned, defaults=defaults), tuple(notes))


def check_asked(asked: Iterable[str]) -> None:
    """Refuse what cannot be read, before anything is built.

    Raises:
        UserInputError: A file is missing or is no prior, or nothing of it all holds evidence.
    """
    found = [None if text == AUTO else _single(Path(text).expanduser()) for text in asked]
    empty = [item for item in found if isinstance(item, NoEvidenceError)]
    if empty and len(empty) == len(found):
        raise empty[0]


def _single(path: Path) -> Prior | NoEvidenceError | None:
    """The prior of a file or of one study folder; ``None`` for a folder of several.

    A study without evidence gives the error that says so: among others it is only left out.
    """
    if not path.is_dir():
        return read_prior(path)
    try:
        return build_prior([observe_study(path)]) if is_study(path) else None
    except NoEvidenceError as error:
        return error


def _nearest(folders: Sequence[Path], target: Target, without: Path | None) -> Iterator[Prior]:
    """Priors of the nearest studies of folders."""
    places = dict.fromkeys(
        place for folder in folders for place in find_evidence(folder, without=without)
    )
    found = list(_candidates(places))
    chosen = _chosen([candidate.entry.network for candidate in found], target.network)
    ranked = sorted(
        ((nearness(found[place].entry, target).weight, -place) for place in chosen), reverse=True
    )
    for weight, place in ranked[:NEAREST]:
        if weight >= WORTH_TAKING:
            yield found[-place].prior()


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A study that was found: live, or an entry of a prior file."""

    entry: StudyEntry
    source: Prior | ObservedStudy

    def prior(self) -> Prior:
        """What it alone says."""
        if isinstance(self.source, Prior):
            return only(self.source, self.entry.id)
        return build_prior([self.source])


def _candidates(places: Iterable[Path]) -> Iterator[_Candidate]:
    """Every study once; what cannot be read, or tried nothing, is passed over."""
    seen: set[str] = set()
    for place in places:
        try:
            found = observe_study(place) if place.is_dir() else read_prior(place)
        except (SmartTunerError, ValueError):
            continue
        entries = found.studies if isinstance(found, Prior) else (found.entry,)
        if not isinstance(found, Prior) and not found.tried_settings():
            continue
        for entry in entries:
            if entry.id not in seen:
                seen.add(entry.id)
                yield _Candidate(entry, found)


def _chosen(networks: Sequence[Network], target: Network) -> list[int]:
    """The nearest by operators, and all of unknown networks."""
    near = nearest_networks([n.operators for n in networks], target.operators, LOOKED_AT)
    unknown = [place for place, network in enumerate(networks) if not network.operators]
    if not near:
        return list(range(len(networks)))
    return [place for place, _ in near] + unknown
