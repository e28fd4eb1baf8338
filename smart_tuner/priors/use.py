"""What a prior says of one study before it begins, as beliefs of the search and as sentences."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from smart_tuner.priors.distance import LEAST_WEIGHT, checks_alike, nearness
from smart_tuner.priors.fold import ACTIVE, Folded, fold
from smart_tuner.samplers.route_sampler.beliefs import Beliefs, ValueBelief

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_tuner.priors.distance import Nearness, Target
    from smart_tuner.priors.document import Prior
    from smart_tuner.priors.fold import Fold

    Setting = tuple[str, str]

LIKELY = 0.5
UNLIKELY = 0.3
ROUTES = 2
"""Past routes that are tried as they are, without the values that did nothing there."""

IRRELEVANT = 0.25
"""What is left of the chance to matter where the network lacks every operator that a knob concerns."""


@dataclass(frozen=True, slots=True)
class Believed:
    """What the search begins from.

    Attributes:
        beliefs: For the search.
        folded: The same for people, by knob and value.
        studies: How far each study was believed.
    """

    beliefs: Beliefs
    folded: Folded
    studies: tuple[Nearness, ...]

    @property
    def weights(self) -> dict[str, float]:
        """Weight by study identifier, those that count."""
        return weights_of(self.studies)


def weigh(prior: Prior, target: Target) -> tuple[Nearness, ...]:
    """How far each study of a prior is believed, the nearest first."""
    found = [nearness(study, target) for study in prior.studies]
    return tuple(sorted(found, key=lambda near: (-near.weight, near.study.id)))


def weights_of(studies: tuple[Nearness, ...]) -> dict[str, float]:
    """Weight by study identifier, without those too far away to count."""
    return {near.study.id: near.weight for near in studies if near.weight >= LEAST_WEIGHT}


def checked_as(prior: Prior, target: Target) -> Prior:
    """A prior with what it says of epsilon as far as that holds for a target's limits."""
    scale = {study.id: checks_alike(study, target) for study in prior.studies}
    knobs = {}
    for name, knob in prior.knobs.items():
        values = {}
        for value, entry in knob.values.items():
            lines = {
                study: line
                if line.violation is None or scale[study] == 1.0
                else line.model_copy(update={"violation": line.violation * scale[study]})
                for study, line in entry.evidence.items()
            }
            values[value] = entry.model_copy(update={"evidence": lines})
        knobs[name] = knob.model_copy(update={"values": values})
    return prior.model_copy(update={"knobs": knobs})


def believe(
    prior: Prior, studies: tuple[Nearness, ...], idle: Mapping[str, str] | None = None
) -> Believed:
    """Make beliefs of a prior that was aligned with the space.

    Args:
        prior: The prior.
        studies: How far each of its studies is believed.
        idle: Why a knob is unlikely to act on this network, by knob name.
    """
    weights = weights_of(studies)
    folded = fold(prior, weights)
    doubted = idle or {}
    values = {
        item: replace(found, active=found.active * IRRELEVANT) if item[0] in doubted else found
        for item, found in folded.values.items()
    }
    beliefs = Beliefs(
        {item: found.belief() for item, found in values.items()},
        _routes(prior, weights, values),
    )
    return Believed(beliefs, replace(folded, values=values), studies)


def doubt(choices: Mapping[str, tuple[str, ...]], idle: Mapping[str, str]) -> Beliefs:
    """Beliefs of relevance alone: knobs that concern no operator of the network matter less.

    Args:
        choices: Choices by knob name, the default first.
        idle: Why a knob is unlikely to act on this network, by knob name.
    """
    belief = ValueBelief(active=IRRELEVANT * ACTIVE)
    return Beliefs(
        {(name, value): belief for name in idle if name in choices for value in choices[name][1:]}
    )


def _routes(
    prior: Prior, weights: Mapping[str, float], values: Mapping[Setting, Fold]
) -> tuple[Mapping[str, str], ...]:
    """The best route of the nearest studies, without what did nothing or is likely to break."""
    routes: list[dict[str, str]] = []
    for study_id in sorted(weights, key=lambda item: -weights[item]):
        for best in prior.by_id[study_id].best[:1]:
            kept = {
                name: value
                for name, value in best.values.items()
                if (found := values.get((name, value))) is not None and _worth_a_try(found)
            }
            if kept and kept not in routes:
                routes.append(kept)
    return tuple(routes[:ROUTES])


def _worth_a_try(found: Fold) -> bool:
    breaks = max(found.failure, found.violation or 0.0)
    return found.active > LIKELY and found.mean < 0 and breaks < UNLIKELY
