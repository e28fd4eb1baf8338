"""A prior against the knobs that a compiler lists today."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from smart_tuner.priors.align import compare_with

if TYPE_CHECKING:
    from smart_tuner.knobs.database import KnobDatabase
    from smart_tuner.priors.align import Changes
    from smart_tuner.priors.document import Prior


@dataclass(frozen=True, slots=True)
class Checked:
    """What a check found.

    Attributes:
        changes: What of the prior the database does not have, or has with another default.
        versions: Tuner versions of the prior's studies that are not the database's.
        silent: Knobs of the database that the prior says nothing of.
        known: Knobs that both have.
    """

    changes: Changes
    versions: tuple[str, ...]
    silent: tuple[str, ...]
    known: int

    @property
    def fits(self) -> bool:
        """Whether all that the prior says can be used as it stands."""
        changes = self.changes
        return not (changes.unknown_knobs or changes.unknown_values or changes.new_defaults)


def check_prior_against(prior: Prior, database: KnobDatabase) -> Checked:
    """Compare a prior with a knob database; values of open knobs count as known."""
    choices = {
        knob.name: knob.choices
        if not (knob.is_open and knob.name in prior.knobs)
        else (knob.default, *prior.knobs[knob.name].values)
        for knob in database
    }
    versions = {study.tuner_version for study in prior.studies} - {database.tuner_version, ""}
    return Checked(
        changes=compare_with([prior], choices),
        versions=tuple(sorted(versions)),
        silent=tuple(name for name in choices if name not in prior.knobs),
        known=sum(name in choices for name in prior.knobs),
    )
