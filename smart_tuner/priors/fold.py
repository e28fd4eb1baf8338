"""From lines of evidence to one belief a value: which values matter counts more than which way.

Signs flip between workloads while the values that matter largely stay the same (see
:mod:`smart_tuner.simulate.families`). So whether a value matters is a weighted vote of the studies,
while its sign is trusted only as far as the studies of the file agree on signs among themselves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from smart_tuner.priors.combine import Votes, combine
from smart_tuner.samplers.route_sampler.beliefs import ValueBelief

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_tuner.priors.document import Evidence, Prior

    Setting = tuple[str, str]
    Weights = Mapping[str, float]
    Lines = Mapping[str, Evidence]

ACTIVE = 0.1
"""Share of values that matter, before any study."""

FAILING = 0.04
"""Share of values that break routes, before any study."""

FLIPPED, WEIGHT_OF_FLIPPED = 0.3, 6.0
"""Share of signs that differ between two studies before any pair was seen, and how many pairs of
signs that weighs. Of a GCC study's flags that matter most, signs differ about as often as not."""

SIZE_SPREAD = 0.35
"""Standard deviation of ln(size) of one value's effect between workloads."""

SLAB = 0.04
LEAST_VOTES = 0.15
"""Below this, sizes and signs of the studies are noise, and nothing is held of them."""

WEIGHT_OF_NOTHING = 0.5
LEAST, MOST = 0.01, 0.95


@dataclass(frozen=True, slots=True)
class Fold:
    """What the studies of a prior say together of one value.

    Attributes:
        active: Probability that it matters.
        faster: Probability that it helps, if it matters.
        mean: Expected effect if it matters, ln(latency ratio).
        spread: Standard deviation of that.
        size: Expected size of the effect, whichever way.
        gain: Expected size of the effect if it helps.
        loss: Expected size of the effect if it does harm.
        gain_seen: Share of ``gain`` that the studies show; the rest is what is usual.
        loss_seen: The same of ``loss``.
        failure: Probability that it breaks routes.
        violation: How likely it breaks epsilon; ``None`` if no study checked.
        tried: Routes of all studies that had it.
        weight: Sum of the weights of the studies that say something of it.
    """

    active: float
    faster: float
    mean: float
    spread: float
    size: float
    gain: float
    loss: float
    gain_seen: float
    loss_seen: float
    failure: float
    violation: float | None
    tried: int
    weight: float

    @property
    def expected(self) -> float:
        """Expected effect on log latency, all in all; negative is faster."""
        return self.active * self.mean

    @property
    def chance_faster(self) -> float:
        """Probability that a new network runs faster with it."""
        return self.active * self.faster

    @property
    def chance_slower(self) -> float:
        """Probability that a new network runs slower with it."""
        return self.active * (1 - self.faster)

    @property
    def promise(self) -> float:
        """What a first try may gain: chance to help times size; the order to try values in."""
        return self.chance_faster * self.gain * (1 - self.failure)

    @property
    def harm(self) -> float:
        """What it may cost: chance to do harm times size."""
        return self.chance_slower * self.loss

    def belief(self) -> ValueBelief:
        """What the search begins with."""
        return ValueBelief(
            active=_within(self.active),
            mean=self.mean,
            spread=max(self.spread, 1e-3),
            failure=_within(self.failure),
            violation=None if self.violation is None else _within(self.violation),
        )


@dataclass(frozen=True, slots=True)
class Folded:
    """What the studies of a prior say together.

    Attributes:
        values: By knob and value.
        shared: Share of what matters that their workloads have in common, as far as it shows.
        flipped: Share of signs that differ between two of them, as far as it shows.
    """

    values: Mapping[Setting, Fold]
    shared: float
    flipped: float


def fold(prior: Prior, weights: Weights) -> Folded:
    """Fold the evidence of a prior, value by value.

    Args:
        prior: The prior.
        weights: Weight by study identifier, 0 to 1; studies left out weigh nothing.
    """
    flip = flipped_share(prior, weights)
    lines = {
        (name, value): heard
        for name, knob in prior.knobs.items()
        for value, entry in knob.values.items()
        if (heard := {k: v for k, v in entry.evidence.items() if weights.get(k, 0.0) > 0})
    }
    if not lines:
        return Folded({}, 0.0, flip)
    active, shared = combine(_votes(lines, weights, "active", ACTIVE))
    failure, _ = combine(_votes(lines, weights, "failure", FAILING))
    values = {
        item: _fold(heard, weights, flip, (float(active[row]), float(failure[row])))
        for row, (item, heard) in enumerate(lines.items())
    }
    return Folded(values, shared, flip)


def flipped_share(prior: Prior, weights: Weights) -> float:
    """Share of signs that differ between two studies of a prior, as far as it shows.

    Every value that matters in two of its studies is one comparison, weighed by how sure both are
    of their signs.
    """
    differing, pairs = FLIPPED * WEIGHT_OF_FLIPPED, WEIGHT_OF_FLIPPED
    for knob in prior.knobs.values():
        for entry in knob.values.values():
            signs = [
                weights[study] * _sign(evidence)
                for study, evidence in entry.evidence.items()
                if weights.get(study, 0.0) > 0 and evidence.active > 0.5
            ]
            for one, other in combinations(signs, 2):
                pairs += abs(one * other)
                differing += max(0.0, -one * other)
    return min(0.5, differing / pairs)


def _votes(lines: Mapping[Setting, Lines], weights: Weights, name: str, before: float) -> Votes:
    """What the studies say of one matter; what was tried in vain only weighs less."""
    studies = [study for study, weight in weights.items() if weight > 0]
    column = {study: place for place, study in enumerate(studies)}
    chance = np.full((len(lines), len(studies)), math.nan)
    weight = np.zeros(chance.shape)
    for row, heard in enumerate(lines.values()):
        for study, line in heard.items():
            chance[row, column[study]] = getattr(line, name)
            weight[row, column[study]] = weights[study]
    return Votes(chance, weight, before)


def _fold(heard: Lines, weights: Weights, flip: float, chances: tuple[float, float]) -> Fold:
    """Size and sign of one value's effect, beside the chances to matter and to break."""
    known = [(weights[study], line) for study, line in heard.items()]
    votes = sum(weight * line.active for weight, line in known)
    size = sum(w * line.active * abs(line.effect) for w, line in known) / max(votes, 1e-9)
    faster = _chance_to_help(known, flip)
    (gain, gain_seen), (loss, loss_seen) = (_size(known, sign, size) for sign in (-1, 1))
    mean, spread = 0.0, SLAB
    if votes > LEAST_VOTES and size > 0:
        error = sum(w * line.active * line.spread**2 for w, line in known) / votes
        square = (1 + SIZE_SPREAD**2) * (faster * gain**2 + (1 - faster) * loss**2) + error
        mean = (1 - faster) * loss - faster * gain
        spread = math.sqrt(max(square - mean**2, 1e-6))
    return Fold(
        active=chances[0],
        faster=faster,
        mean=mean,
        spread=spread,
        size=size,
        gain=gain,
        loss=loss,
        gain_seen=gain_seen,
        loss_seen=loss_seen,
        failure=chances[1],
        violation=_violation(known),
        tried=sum(line.tried for _, line in known),
        weight=sum(weight for weight, _ in known),
    )


def _size(lines: list[tuple[float, Evidence]], sign: int, size: float) -> tuple[float, float]:
    """Expected size of an effect of one sign, and the share of it that studies show.

    What slows one network down by half does not speed another one up by as much: of a sign that no
    study has seen, no more than the usual size is expected.
    """
    seen = [
        (weight * line.active, abs(line.effect))
        for weight, line in lines
        if line.effect * sign > 0
    ]
    votes = sum(weight for weight, _ in seen)
    usual = WEIGHT_OF_NOTHING * min(size, SLAB)
    shown = sum(weight * effect for weight, effect in seen)
    total = usual + shown
    return total / (WEIGHT_OF_NOTHING + votes), shown / total if total else 0.0


def _violation(lines: list[tuple[float, Evidence]]) -> float | None:
    """Weighted mean of what the studies that checked say, and of nothing at all."""
    checked = [(w, line.violation) for w, line in lines if line.violation is not None]
    if not checked:
        return None
    total = WEIGHT_OF_NOTHING + sum(weight for weight, _ in checked)
    return (WEIGHT_OF_NOTHING * LEAST + sum(w * share for w, share in checked)) / total


def _chance_to_help(lines: list[tuple[float, Evidence]], flip: float) -> float:
    """Probability of a negative effect here, given the signs of the studies.

    Members of a family turn a common sign round with probability p, so that two of them differ
    with 2 p (1 - p); each study is a vote for the common sign, and this workload may turn it too.
    """
    turned = (1 - math.sqrt(max(0.0, 1 - 2 * flip))) / 2
    if turned <= 0:
        turned = 1e-3
    strength = math.log((1 - turned) / turned)
    odds = -strength * sum(weight * line.active * _sign(line) for weight, line in lines)
    common = 1 / (1 + math.exp(-max(-30.0, min(30.0, odds))))
    return common * (1 - turned) + (1 - common) * turned


def _sign(line: Evidence) -> float:
    """Between -1 (surely faster) and 1 (surely slower)."""
    if line.effect == 0:
        return 0.0
    return math.erf(line.effect / max(line.spread, 1e-6) / math.sqrt(2))


def _within(share: float) -> float:
    return min(MOST, max(LEAST, share))
