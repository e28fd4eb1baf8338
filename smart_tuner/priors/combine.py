"""What studies that each know a little know together, if their workloads are of one family.

The model: a share of what is true of values is true in every workload of the family, the rest is
each workload's own. A study's probability is turned back into the odds that its data speak for, so
that several weak hints add up and many clear denials outweigh one false alarm. How much workloads
of the file share is learnt from the file itself (empirical Bayes), on a coarse grid.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Figures = npt.NDArray[np.float64]

SHARES = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
"""What workloads may share; each as likely before any study."""

KEPT = 0.95
"""Chance that something of the family is true of one of its workloads."""

LEAST, MOST = 0.02, 0.99
"""Bounds on what a single study is believed to know."""


@dataclass(frozen=True, slots=True)
class Votes:
    """What studies say of values.

    Attributes:
        chance: Probability by study; NaN where a study says nothing; shape (values, studies).
        weight: Chance that each study is of this workload's family; shape (values, studies).
        before: Probability that each study began from, as a share of all values.
    """

    chance: Figures
    weight: Figures
    before: float


def combine(votes: Votes) -> tuple[Figures, float]:
    """Probability of each value to be so here too, and the share that workloads have in common.

    Args:
        votes: What studies say.

    Returns:
        Probabilities, shape (values,), and the expected share.
    """
    ratio = _likelihood_ratio(votes)
    chances, evidence = [], []
    for share in SHARES:
        common = votes.before * share
        own = votes.before * (1 - share) / (1 - common)
        alone = own * ratio + 1 - own
        related = votes.weight * (KEPT * ratio + 1 - KEPT) + (1 - votes.weight) * alone
        log_common = np.log(common) + np.log(related).sum(axis=1)
        log_own = np.log1p(-common) + np.log(alone).sum(axis=1)
        total = np.logaddexp(log_common, log_own)
        is_common = np.exp(log_common - total)
        chances.append(is_common * KEPT + (1 - is_common) * own)
        evidence.append(float(total.sum()))
    belief = np.exp(np.array(evidence) - max(evidence))
    belief /= belief.sum()
    return np.asarray(belief @ np.array(chances)), float(belief @ SHARES)


def _likelihood_ratio(votes: Votes) -> Figures:
    """How much more likely each study's data are if the value is so than if it is not."""
    chance = np.clip(np.nan_to_num(votes.chance, nan=votes.before), LEAST, MOST)
    before = votes.before / (1 - votes.before)
    ratio = chance / (1 - chance) / before
    return np.asarray(np.where(np.isnan(votes.chance), 1.0, ratio))
