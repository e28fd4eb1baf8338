"""What the prior said of each value, against what the study found."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from smart_tuner.study.files.prior import PRIOR

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_tuner.priors.found import SaidAndFound
    from smart_tuner.report.reading import StudyView


@dataclass(frozen=True, slots=True)
class PriorReview:
    """The prior, value by value.

    Attributes:
        used: Whether the study began from a prior.
        rows: What it said and what was found, what was promised most first.
        verdicts: How often each verdict was reached, the most frequent first.
        weights: How much each earlier study counted, by its name.
    """

    used: bool
    rows: tuple[SaidAndFound, ...]
    verdicts: Mapping[str, int]
    weights: Mapping[str, float]


def prior_of(view: StudyView) -> PriorReview:
    """Hold the study's prior against what it found."""
    kept = view.document.get(PRIOR)
    counts = Counter(row.verdict for row in view.prior)
    return PriorReview(
        used=isinstance(kept, dict),
        rows=view.prior,
        verdicts=dict(counts.most_common()),
        weights=dict(kept.get("weights", {})) if isinstance(kept, dict) else {},
    )
