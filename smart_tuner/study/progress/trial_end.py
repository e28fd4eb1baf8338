"""What a listener hears of a trial that ended, whoever tried it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smart_tuner.storages.history import best_feasible
from smart_tuner.study.progress.events import TrialFinished

if TYPE_CHECKING:
    from collections.abc import Sequence

    from smart_tuner.storages.history import TrialRecord
    from smart_tuner.study.progress.budget import Budget


def trial_finished(
    record: TrialRecord, records: Sequence[TrialRecord], baseline_ms: float, budget: Budget
) -> TrialFinished:
    """Put a trial's end into an event.

    Args:
        record: The trial.
        records: Every finished trial.
        baseline_ms: The study's frozen baseline latency.
        budget: What is spent, and what is left.
    """
    best = best_feasible(records)
    best_ms = best.value_ms if best and best.value_ms else baseline_ms
    seconds = [item.seconds.get("total", 0.0) for item in records]
    return TrialFinished(
        number=record.number,
        route=record.route,
        outcome=record.outcome,
        gain=None if record.value_ms is None else baseline_ms / record.value_ms,
        half_width=record.half_width,
        unchanged=record.unchanged,
        over_limits=record.over_limits,
        message=record.message,
        incumbent_gain=baseline_ms / best_ms,
        spent_seconds=budget.spent,
        budget_seconds=budget.seconds,
        search_left_seconds=budget.search_ends_in(seconds),
    )
