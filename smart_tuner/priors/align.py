"""Bringing priors to one space of knobs: names, values and defaults as they are today."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from smart_tuner.priors.document import KnobEntry, Prior, ValueEntry

NAMED = 3


@dataclass(frozen=True, slots=True)
class Changes:
    """How a prior differs from a space of knobs.

    Attributes:
        unknown_knobs: Knobs that are not searched here, or do not exist any more.
        unknown_values: Knob and value that a knob does not take here.
        new_defaults: Knob, default in the prior, default here.
    """

    unknown_knobs: tuple[str, ...]
    unknown_values: tuple[tuple[str, str], ...]
    new_defaults: tuple[tuple[str, str, str], ...]

    @property
    def sentences(self) -> tuple[str, ...]:
        """One sentence a kind, as far as there is something to say."""
        said = []
        if self.unknown_knobs:
            said.append(f"left out what is not searched here, {_some('knob', self.unknown_knobs)}")
        if self.unknown_values:
            names = [f"{name}={value}" for name, value in self.unknown_values]
            said.append(f"left out what is not offered here, {_some('value', names)}")
        for name, before, now in self.new_defaults[:NAMED]:
            said.append(
                f"{name} has the default {now} here and had {before} there: only whether it "
                "matters was taken over, not which way"
            )
        if len(self.new_defaults) > NAMED:
            said.append(f"likewise {len(self.new_defaults) - NAMED} more knobs with a new default")
        return tuple(said)


def compare_with(priors: Iterable[Prior], choices: Mapping[str, tuple[str, ...]]) -> Changes:
    """What of some priors does not fit a space.

    Args:
        priors: The priors.
        choices: Choices by knob name, the default first.
    """
    found = [_changes(prior, choices) for prior in priors]
    return Changes(
        unknown_knobs=tuple(dict.fromkeys(n for one in found for n in one.unknown_knobs)),
        unknown_values=tuple(dict.fromkeys(v for one in found for v in one.unknown_values)),
        new_defaults=tuple(dict.fromkeys(d for one in found for d in one.new_defaults)),
    )


def _changes(prior: Prior, choices: Mapping[str, tuple[str, ...]]) -> Changes:
    known = {name: knob for name, knob in prior.knobs.items() if name in choices}
    return Changes(
        unknown_knobs=tuple(name for name in prior.knobs if name not in choices),
        unknown_values=tuple(
            (name, value)
            for name, knob in known.items()
            for value in knob.values
            if value not in choices[name]
        ),
        new_defaults=tuple(
            (name, knob.default, choices[name][0])
            for name, knob in known.items()
            if knob.default != choices[name][0]
        ),
    )


def align(prior: Prior, choices: Mapping[str, tuple[str, ...]]) -> Prior:
    """A prior as far as it speaks of a space; effects count from the space's defaults.

    Where a default changed, nobody knows the effect of a value against the new one: what stays is
    whether the value mattered, without a sign.
    """
    return prior.model_copy(
        update={
            "knobs": {
                name: _aligned(knob, choices[name])
                for name, knob in prior.knobs.items()
                if name in choices
            }
        }
    )


def rebased(knob: KnobEntry, default: str) -> KnobEntry:
    """A knob's evidence seen from another default."""
    if knob.default == default:
        return knob
    values = {value: _unsigned(entry) for value, entry in knob.values.items() if value != default}
    return knob.model_copy(update={"default": default, "values": values})


def _aligned(knob: KnobEntry, choices: tuple[str, ...]) -> KnobEntry:
    moved = rebased(knob, choices[0])
    values = {value: entry for value, entry in moved.values.items() if value in choices}
    return moved.model_copy(update={"values": values})


def _unsigned(entry: ValueEntry) -> ValueEntry:
    lines = {
        study: line.model_copy(update={"effect": 0.0}) for study, line in entry.evidence.items()
    }
    return entry.model_copy(update={"evidence": lines})


def _some(what: str, names: tuple[str, ...] | list[str]) -> str:
    listed = ", ".join(names[:NAMED])
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{len(names)} {what}{'' if len(names) == 1 else 's'}: {listed}{more}"
