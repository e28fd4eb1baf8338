"""Each region lowered alone, before anything is combined: what it gains and what it costs.

Losses of regions add up well enough to tell which combinations stay under epsilon, once each has
been seen by itself; a search that begins with combinations has to take them apart again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from smart_tuner.precision.knobs import SOURCE
from smart_tuner.precision.support import KEEP, VALUES
from smart_tuner.storages.ask import enqueue
from smart_tuner.storages.keys import REASON

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import optuna

    from smart_tuner.knobs.space import SearchSpace

DEFAULT_REASON = "baseline"
ALL_REASON = "screening, every region lowered"
ALONE_REASON = "screening, one region alone"

_REASONS = frozenset({ALL_REASON, ALONE_REASON})

BUDGET_SHARE = 0.25
"""Share of the budget that these routes may take; beyond it the sampler finds its own way."""

LEAST_SECONDS = 3.0
"""What a trial takes at least, its process and its validation included."""


def queue_sensitivity(
    study: optuna.Study, space: SearchSpace, trial_seconds: float, budget_seconds: float
) -> int:
    """Queue routes in a study that has not begun: all regions lowered, then each alone.

    Args:
        study: The study.
        space: The knobs that are searched.
        trial_seconds: What building and measuring the baseline took.
        budget_seconds: Limit on the whole study.

    Returns:
        How many routes were queued.
    """
    trials = study.get_trials(deepcopy=False)
    if any(trial.params or trial.user_attrs.get(REASON) in _REASONS for trial in trials):
        return 0
    affordable = int(BUDGET_SHARE * budget_seconds / max(trial_seconds, LEAST_SECONDS))
    routes = list(_all(space))
    alone = list(_alone(space))
    if len(routes) + len(alone) <= affordable:
        routes += alone
    chosen = routes[:affordable]
    if chosen:
        # What routes gain is told against the default, which costs nothing to try.
        enqueue(study, {}, DEFAULT_REASON, space.choices)
    for values, reason in chosen:
        enqueue(study, values, reason, space.choices)
    return len(chosen)


def _regions(space: SearchSpace) -> dict[str, tuple[str, ...]]:
    return {
        knob.name: tuple(value for value in VALUES if value in knob.values and value != KEEP)
        for knob in space.knobs
        if knob.source == SOURCE
    }


def _all(space: SearchSpace) -> Iterator[tuple[Mapping[str, str], str]]:
    """Every region at one value, for each value."""
    regions = _regions(space)
    for value in VALUES:
        lowered = {name: value for name, values in regions.items() if value in values}
        if len(lowered) > 1:
            yield lowered, ALL_REASON


def _alone(space: SearchSpace) -> Iterator[tuple[Mapping[str, str], str]]:
    for name, values in _regions(space).items():
        for value in values:
            yield {name: value}, ALONE_REASON
