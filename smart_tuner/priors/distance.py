"""How near a past study is to the one at hand, and how far it is believed for that.

Every factor is a plain rule with a sentence of its own; the weight of a study is their product.
The figures are choices, not measurements: what misleads is let go by the search in any case.
"""

from __future__ import annotations

import datetime
import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from smart_tuner.priors.document import Network

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from smart_tuner.priors.document import StudyEntry

    Factor = tuple[float, str]

LEAST_WEIGHT = 0.05
"""Below this, a study is not used at all."""

HALF_LIFE_DAYS = 3 * 365
NO_OVERLAP = 0.4
"""Weight left of a network that shares no operator: the compiler is still the same."""

UNKNOWN_NETWORK = 0.5
OTHER_DEVICE, SAME_MAKER, UNKNOWN_DEVICE = 0.4, 0.7, 0.6
SAME_LINE, OTHER_VERSION, UNKNOWN_VERSION = 0.85, 0.6, 0.8
OTHER_OBJECTIVE = 0.7
LEAST_OF_SIZE = 0.7
FOREIGN = 0.7
FOLDED = frozenset(("Constant", "ConstantOfShape", "Identity", "Shape"))
LOOSER = 0.5
"""Weight of violations that were seen under another metric or a tighter epsilon."""


@dataclass(frozen=True, slots=True)
class Target:
    """The study that is to begin.

    Attributes:
        backend: Its name.
        backend_version: E.g. ``onnxruntime 1.32.0``.
        tuner_version: Of the knob database.
        device: Processor or GPU.
        metric: Accuracy loss.
        epsilon: Its limit, as text.
        objective: What is measured.
        network: What is tuned.
        today: Date from which age counts.
    """

    backend: str = ""
    backend_version: str = ""
    tuner_version: str = ""
    device: str = ""
    metric: str = ""
    epsilon: str = ""
    objective: str = "end_to_end"
    network: Network = field(default_factory=Network)
    today: datetime.date = field(
        default_factory=lambda: datetime.datetime.now(datetime.timezone.utc).date()
    )


@dataclass(frozen=True, slots=True)
class Nearness:
    """How far a study is believed.

    Attributes:
        study: Its entry.
        weight: 0 to 1.
        reasons: What made the weight, one phrase a factor.
    """

    study: StudyEntry
    weight: float
    reasons: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """``used 0.62 of study X: same device, 71 % operator overlap``."""
        why = ", ".join(self.reasons)
        if self.weight < LEAST_WEIGHT:
            return f"did not use study {self.study.name}: {why}"
        return f"used {self.weight:.2f} of study {self.study.name}: {why}"


def nearness(study: StudyEntry, target: Target) -> Nearness:
    """Weigh a study for a target."""
    factors = list(_factors(study, target))
    weight = math.prod(factor for factor, _ in factors)
    return Nearness(study, round(weight, 3), tuple(reason for _, reason in factors))


def computing(operators: Mapping[str, int]) -> dict[str, int]:
    """A histogram without what every compiler folds away before it runs."""
    return {name: count for name, count in operators.items() if name not in FOLDED}


def operator_overlap(one: Mapping[str, int], other: Mapping[str, int]) -> float:
    """Share of nodes that two networks have in common, each histogram scaled to one."""
    one, other = computing(one), computing(other)
    total, others = sum(one.values()), sum(other.values())
    if not (total and others):
        return 0.0
    return sum(min(one[name] / total, other[name] / others) for name in one.keys() & other.keys())


def _factors(study: StudyEntry, target: Target) -> Iterator[Factor]:
    if study.backend and target.backend and study.backend != target.backend:
        yield 0.0, f"made with {study.backend}, not {target.backend}"
        return
    if study.source != "study":
        yield FOREIGN, f"made by {study.source}, one figure a route"
    yield _device(study.device, target.device)
    yield _network(study.network, target.network)
    yield _version(study.tuner_version, target.tuner_version)
    if study.objective != target.objective:
        yield OTHER_OBJECTIVE, f"measured {study.objective}, not {target.objective}"
    yield _age(study.created, target.today)


def _device(one: str, other: str) -> Factor:
    if not (one and other):
        return UNKNOWN_DEVICE, "its device is not known"
    kind = "GPU" if "NVIDIA" in one else "processor"
    if one == other:
        return 1.0, f"same {kind}"
    if one.split()[0] == other.split()[0]:
        return SAME_MAKER, f"another {kind} of one maker ({one})"
    return OTHER_DEVICE, f"another device ({one})"


def _network(one: Network, other: Network) -> Factor:
    if one.sha256 and one.sha256 == other.sha256:
        return 1.0, "same network"
    if not (one.operators and other.operators):
        return UNKNOWN_NETWORK, "its network is not known"
    overlap = operator_overlap(one.operators, other.operators)
    weight = NO_OVERLAP + (1 - NO_OVERLAP) * overlap
    text = f"{overlap:.0%} operator overlap".replace("%", " %")
    if one.size_bytes and other.size_bytes:
        tens = abs(math.log10(one.size_bytes / other.size_bytes))
        if tens >= 1:
            weight *= max(LEAST_OF_SIZE, 1 - 0.15 * tens)
            text += f", {10**tens:.0f} times the size apart"
    return weight, text


def _version(one: str, other: str) -> Factor:
    if not (one and other):
        return UNKNOWN_VERSION, "its tuner version is not known"
    if one == other:
        return 1.0, "same tuner version"
    lines = [re.findall(r"\d+", text)[:2] for text in (one, other)]
    weight = SAME_LINE if lines[0] == lines[1] else OTHER_VERSION
    return weight, f"another tuner version ({one})"


def _age(created: str, today: datetime.date) -> Factor:
    try:
        date = datetime.date.fromisoformat(created[:10])
    except ValueError:
        return UNKNOWN_VERSION, "its date is not known"
    days = max(0, (today - date).days)
    age = f"{days} days old" if days != 1 else "1 day old"
    return 0.5 ** (days / HALF_LIFE_DAYS), age


def checks_alike(study: StudyEntry, target: Target) -> float:
    """How far violations seen in a study hold for a target's metric and epsilon."""
    if not study.metric or study.metric != target.metric:
        return LOOSER
    try:
        return 1.0 if float(target.epsilon) <= float(study.epsilon) else LOOSER
    except ValueError:
        return LOOSER
