"""The noise floor: the baseline measured against itself, once a session."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from smart_tuner.measure.statistics import combine

if TYPE_CHECKING:
    from collections.abc import Mapping

    import optuna

    from smart_tuner.trial.trial import Trial

BASELINE_NOISE = "baseline_noise"
"""Study attribute: ``[log ratio, half width]`` of the baseline against a second process with the
same engine, one pair a session. Whatever differs from 0 there is noise."""


def note_baseline_noise(study: optuna.Study, trial: Trial, weights: Mapping[str, float]) -> None:
    """Keep what the baseline showed against itself in this session.

    Args:
        study: The study.
        trial: The baseline's trial, as ``BaselineReport.trial`` has it.
        weights: Weight by workload point.
    """
    if not trial.comparisons:
        return
    seen = [float(figure) for figure in combine(trial.comparisons, weights)]
    # Too few pairs give an infinite width, which a journal does not hold.
    if all(map(math.isfinite, seen)):
        study.set_user_attr(BASELINE_NOISE, [*baseline_noise(study), seen])


def baseline_noise(study: optuna.Study) -> list[list[float]]:
    """What sessions so far have seen: log ratio and half width of each."""
    return [
        [float(ratio), float(width)] for ratio, width in study.user_attrs.get(BASELINE_NOISE, [])
    ]
