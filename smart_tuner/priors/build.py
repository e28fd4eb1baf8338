"""Making prior files of studies, and one prior of several."""

from __future__ import annotations

import datetime
import hashlib
from statistics import median
from typing import TYPE_CHECKING

from smart_tuner.errors import UserInputError
from smart_tuner.priors.align import rebased
from smart_tuner.priors.attribute import attribute
from smart_tuner.priors.document import (
    LARGEST_EFFECT,
    MAX_STUDIES,
    BestRoute,
    KnobEntry,
    Prior,
    ValueEntry,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from smart_tuner.priors.document import StudyEntry
    from smart_tuner.priors.observed import ObservedStudy

BEST = 3
"""Routes of each study that are kept."""


class NoEvidenceError(UserInputError):
    """A study that tried nothing but the default teaches nothing."""


def build_prior(studies: Sequence[ObservedStudy], *, notes: str = "") -> Prior:
    """Turn studies into a prior; the same studies give the same one, its date left aside.

    Raises:
        UserInputError: A study has nothing to tell.
    """
    return merge_priors([_one(study) for study in studies], notes=notes)


def merge_priors(
    priors: Iterable[Prior], *, notes: str = "", defaults: Mapping[str, str] | None = None
) -> Prior:
    """Put the evidence of several priors side by side; of a study in two of them, the last counts.

    Where two differ in a knob's default, effects count from the first one's, and of the others
    only whether a value mattered is kept.

    Args:
        priors: The priors.
        notes: Of the new one.
        defaults: Defaults by knob name that effects shall count from.

    Raises:
        UserInputError: They hold more studies than a file may.
    """
    studies: dict[str, StudyEntry] = {}
    knobs: dict[str, KnobEntry] = {}
    for prior in priors:
        studies |= prior.by_id
        for name, knob in prior.knobs.items():
            first = knobs.get(name) or KnobEntry(default=(defaults or {}).get(name, knob.default))
            knobs[name] = _joined(first, rebased(knob, first.default))
    if len(studies) > MAX_STUDIES:
        msg = (
            f"{len(studies)} studies are more than a prior holds ({MAX_STUDIES}): leave some out."
        )
        raise UserInputError(msg)
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    return Prior(created=today, notes=notes, studies=tuple(studies.values()), knobs=knobs)


def only(prior: Prior, study: str) -> Prior:
    """What one study of a prior says, with the notes of people.

    Args:
        prior: The prior.
        study: Identifier.
    """
    knobs = {}
    for name, knob in prior.knobs.items():
        values = {
            value: entry.model_copy(update={"evidence": {study: entry.evidence[study]}})
            for value, entry in knob.values.items()
            if study in entry.evidence
        }
        if values:
            knobs[name] = knob.model_copy(update={"values": values})
    return prior.model_copy(update={"studies": (prior.by_id[study],), "knobs": knobs})


def _joined(one: KnobEntry, other: KnobEntry) -> KnobEntry:
    """Two entries of one knob with one default."""
    values = dict(one.values)
    for value, entry in other.values.items():
        before = values.get(value, ValueEntry())
        lines = {**before.evidence, **entry.evidence}
        values[value] = ValueEntry(notes=entry.notes or before.notes, evidence=lines)
    return KnobEntry(default=one.default, notes=other.notes or one.notes, values=values)


def study_id(name: str, material: str) -> str:
    """An identifier that people can read and that differs for different studies.

    Args:
        name: The study's name.
        material: Text that is the study's own: its date, network, device and routes.
    """
    plain = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in name)
    digest = hashlib.sha256(material.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{plain.strip('-')[:40] or 'study'}-{digest}"


def _one(study: ObservedStudy) -> Prior:
    evidence, noise = attribute(study)
    if not evidence:
        msg = f"The study {study.entry.name} tried nothing but the default: there is no evidence."
        raise NoEvidenceError(msg)
    entry = study.entry.model_copy(
        update={
            "noise": noise,
            "trials": len(study.trials),
            "best": _best(study),
            "baseline": study.entry.baseline.model_copy(update={"half_width": _half_width(study)}),
        }
    )
    values: dict[str, dict[str, ValueEntry]] = {}
    for (name, value), line in evidence.items():
        values.setdefault(name, {})[value] = ValueEntry(evidence={entry.id: line})
    return Prior(
        studies=(entry,),
        knobs={
            name: KnobEntry(default=study.choices[name][0], values=entries)
            for name, entries in values.items()
        },
    )


def _half_width(study: ObservedStudy) -> float:
    """How unsure one measurement was at the median trial; 0 if no trial says."""
    widths = [trial.half_width for trial in study.trials if trial.half_width is not None]
    return round(min(LARGEST_EFFECT, median(widths)), 4) if widths else 0.0


def _best(study: ObservedStudy) -> tuple[BestRoute, ...]:
    """The fastest feasible routes, one each."""
    ranked = sorted(
        (
            (trial.log_ratio, number, trial)
            for number, trial in enumerate(study.trials)
            if trial.is_feasible and trial.log_ratio is not None and trial.log_ratio < 0
            if not trial.unchanged
        )
    )
    return tuple(
        BestRoute(values=dict(trial.values), effect=round(max(-LARGEST_EFFECT, ratio), 4))
        for ratio, _, trial in ranked[:BEST]
    )
