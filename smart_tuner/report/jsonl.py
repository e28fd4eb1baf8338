"""Trials as JSON lines."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from smart_tuner.storages.history import TrialRecord


def trial_row(record: TrialRecord, baseline_ms: float | None) -> str:
    """One trial as a line of ``trials.jsonl``: strict JSON, ``null`` where there is no figure.

    Args:
        record: The trial.
        baseline_ms: The study's frozen baseline latency, for the gain; None if there is none.
    """
    return json.dumps(trial_facts(record, baseline_ms), ensure_ascii=False, allow_nan=False)


def trial_facts(record: TrialRecord, baseline_ms: float | None) -> dict[str, Any]:
    """One trial as plain data; ``None`` where there is no figure.

    Args:
        record: The trial.
        baseline_ms: The study's frozen baseline latency, for the gain; None if there is none.
    """
    return {
        "number": record.number,
        "route": str(record.route),
        "outcome": record.outcome.value,
        "latency_ms": _finite(record.value_ms),
        "gain": baseline_ms / record.value_ms if baseline_ms and record.value_ms else None,
        "half_width": _finite(record.half_width),
        "violation": _finite(record.violation),
        "over_limits": list(record.over_limits),
        "unchanged": record.unchanged,
        "fingerprint": record.fingerprint,
        "seconds": dict(record.seconds),
        "reason": record.reason,
        "message": record.message,
    }


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
