"""What each study of a prior found of one value, in few words, and where platforms disagree."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from smart_tuner.report.markdown import plain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from smart_tuner.priors.document import Evidence, Prior, StudyEntry

    Setting = tuple[str, str]

PERHAPS, PROBABLY = 0.1, 0.5
"""Probability that an effect is more than noise, from which on it is told with a doubt, and without."""

COARSE = 0.1
"""Change of latency from which on tenths of a per cent are not told."""

CLEAR = 0.01
"""Least mean effect of a platform, ln(latency ratio), that can disagree with another's."""


@dataclass(frozen=True, slots=True)
class Sources:
    """Studies of a prior, under the names that people read.

    Attributes:
        prior: The prior.
        names: Short name by identifier.
        platforms: Identifiers of the studies of each platform.
    """

    prior: Prior
    names: Mapping[str, str]
    platforms: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, prior: Prior) -> Sources:
        """Name the studies by their last part where that tells them apart."""
        last = [study.name.rpartition("/")[2] for study in prior.studies]
        is_clear = len(set(last)) == len(last)
        names = {
            study.id: plain(short if is_clear else study.name)
            for study, short in zip(prior.studies, last, strict=True)
        }
        platforms: defaultdict[str, tuple[str, ...]] = defaultdict(tuple)
        for study in prior.studies:
            platforms[platform_of(study)] += (study.id,)
        return cls(prior, names, dict(platforms))

    @property
    def items(self) -> tuple[Setting, ...]:
        """Every knob and value that is told of."""
        return tuple((k, v) for k, knob in self.prior.knobs.items() for v in knob.values)

    def told(self, item: Setting) -> str:
        """What each study found of a value, by platform where there are several."""
        lines = self._lines(item)
        parts = []
        for platform, studies in self.platforms.items():
            told = ", ".join(f"{self.names[s]} {_found(lines[s])}" for s in studies if s in lines)
            if told:
                parts.append(f"{platform}: {told}" if len(self.platforms) > 1 else told)
        return "; ".join(parts)

    def quarrel(self, item: Setting) -> str:
        """How platforms disagree on which way a value goes; empty if they do not."""
        lines = self._lines(item)
        means = {
            platform: mean
            for platform, studies in self.platforms.items()
            if abs(mean := _mean([lines[s] for s in studies if s in lines])) >= CLEAR
        }
        if not (means and min(means.values()) < 0 < max(means.values())):
            return ""
        return ", ".join(f"{name} {_way(mean)}" for name, mean in means.items())

    def _lines(self, item: Setting) -> Mapping[str, Evidence]:
        return self.prior.knobs[item[0]].values[item[1]].evidence


def platform_of(study: StudyEntry) -> str:
    """The device without the marks and words that tell nothing."""
    name = re.sub(r"\((R|TM|C)\)|\b(Processor|CPU)\b", " ", study.device, flags=re.IGNORECASE)
    return plain(name) or "unknown platform"


def change(effect: float) -> str:
    """An effect, ln(latency ratio), as a change of latency: ``-3.1 %`` is faster."""
    share = math.expm1(effect)
    digits = 1 if abs(share) < COARSE else 0
    return f"{share:+.{digits}%}".replace("%", " %")


def _found(line: Evidence) -> str:
    if not line.measured:
        return "failed" if line.failed else "not measured"
    if line.active < PERHAPS:
        text = "0 %"
    elif line.effect == 0:
        text = "other default"
    else:
        text = f"{change(line.effect)}{'' if line.active >= PROBABLY else '?'}"
    return f"{text} ({line.measured})"


def _mean(lines: Sequence[Evidence]) -> float:
    """Mean effect of what probably is one, weighed by that probability; 0 if nothing is."""
    known = [line for line in lines if line.measured and line.effect]
    votes = sum(line.active for line in known)
    if votes < PROBABLY:
        return 0.0
    return sum(line.active * line.effect for line in known) / votes


def _way(mean: float) -> str:
    size = f"{abs(math.expm1(mean)):.0%}".replace("%", " %")
    return f"{size} {'faster' if mean < 0 else 'slower'}"
