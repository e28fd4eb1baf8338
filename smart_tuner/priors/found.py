"""Afterwards: what the prior said of each knob, and what the study found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from smart_tuner.priors.attribute import attribute

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_tuner.priors.document import Evidence
    from smart_tuner.priors.fold import Fold
    from smart_tuner.priors.observed import ObservedStudy

    Setting = tuple[str, str]

MATTERS, IDLE = 0.5, 0.2
"""Probabilities to matter above and below which something is said to matter, or not to."""

SMALL = 0.005
LIKELY_TO_BREAK = 0.3


@dataclass(frozen=True, slots=True)
class SaidAndFound:
    """One value, before and after.

    Attributes:
        knob: Its knob.
        value: The value.
        said_active: Probability to matter, as the prior had it.
        said_effect: Effect on log latency if it matters, as the prior had it; negative is faster.
        said_spread: Standard deviation of that.
        said_failure: Probability to break routes, as the prior had it.
        tried: Routes of this study that had it.
        found_active: Probability that it mattered here; ``None`` if it was never tried.
        found_effect: Its effect here if it did; ``None`` if it was never measured.
        found_spread: Standard deviation of that.
        found_failure: Probability that it breaks routes here; ``None`` if it was never tried.
        verdict: ``confirmed``, ``other way round``, ``did not matter``, ``mattered after all``,
            ``broke``, ``worked after all``, ``not tried`` or ``still open``.
    """

    knob: str
    value: str
    said_active: float
    said_effect: float
    said_spread: float
    said_failure: float
    tried: int
    found_active: float | None
    found_effect: float | None
    found_spread: float | None
    found_failure: float | None
    verdict: str


def said_and_found(said: Mapping[Setting, Fold], study: ObservedStudy) -> tuple[SaidAndFound, ...]:
    """Compare a prior with the study that began from it, what was promised most first.

    Args:
        said: What the prior said, by knob and value.
        study: What came out.
    """
    found, _ = attribute(study)
    order = sorted(said, key=lambda item: (-said[item].active * said[item].size, item))
    return tuple(_row(item, said[item], found.get(item)) for item in order)


def _row(item: Setting, fold: Fold, line: Evidence | None) -> SaidAndFound:
    measured = line is not None and line.measured > 0
    return SaidAndFound(
        knob=item[0],
        value=item[1],
        said_active=fold.active,
        said_effect=fold.mean,
        said_spread=fold.spread,
        said_failure=fold.failure,
        tried=0 if line is None else line.tried,
        found_active=line.active if line is not None and measured else None,
        found_effect=line.effect if line is not None and measured else None,
        found_spread=line.spread if line is not None and measured else None,
        found_failure=None if line is None else line.failure,
        verdict=_verdict(fold, line),
    )


def _verdict(fold: Fold, line: Evidence | None) -> str:
    if line is None or not line.tried:
        return "not tried"
    is_warned = fold.failure > LIKELY_TO_BREAK
    if line.failure > MATTERS:
        return "confirmed" if is_warned else "broke"
    if not line.measured or is_warned:
        return "worked after all" if line.measured else "still open"
    if line.active > MATTERS:
        return _of_active(fold, line)
    if line.active < IDLE:
        return "did not matter" if fold.active > MATTERS else "confirmed"
    return "still open"


def _of_active(fold: Fold, line: Evidence) -> str:
    if fold.active < IDLE:
        return "mattered after all"
    if abs(fold.mean) < SMALL or fold.mean * line.effect >= 0:
        return "confirmed"
    return "other way round"
