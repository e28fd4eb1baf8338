"""The latency that all values of a study are counted from."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from smart_tuner.study.files.names import BASELINE_MS

if TYPE_CHECKING:
    from collections.abc import Mapping

    import optuna


def frozen_baseline_ms(
    study: optuna.Study, medians: Mapping[str, float], weights: Mapping[str, float]
) -> float:
    """The baseline latency that values of this study are counted from.

    The first session writes it; later ones read it, so that values of all sessions compare.

    Args:
        study: The study.
        medians: Baseline median in milliseconds by workload point.
        weights: Weight by workload point.
    """
    kept = study.user_attrs.get(BASELINE_MS)
    if isinstance(kept, float) and kept > 0:
        return kept
    total = sum(weights.values())
    value = math.exp(sum(weights[p] * math.log(medians[p]) for p in weights) / total)
    study.set_user_attr(BASELINE_MS, value)
    return value
