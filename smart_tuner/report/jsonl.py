"""Trials as JSON lines."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from smart_tuner.errors import UserInputError
from smart_tuner.route.build_route import BuildRoute
from smart_tuner.route.grammar import split_tokens
from smart_tuner.storages.history import TrialRecord
from smart_tuner.trial.trial import TrialOutcome

if TYPE_CHECKING:
    from pathlib import Path


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


def read_trials(path: Path) -> tuple[TrialRecord, ...]:
    """Trials as ``trial_row`` wrote them; of a finished study often all that is kept.

    Raises:
        UserInputError: It cannot be read, or a line is no trial.
    """
    try:
        return tuple(_record(json.loads(line)) for line in path.read_text("utf-8").splitlines())
    except (OSError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        msg = f"{path} is damaged ({error}); the report goes without it."
        raise UserInputError(msg) from None


def _record(row: dict[str, Any]) -> TrialRecord:
    tokens = (token.text.removeprefix("-") for token in split_tokens(row["route"], "a route"))
    pairs = (token.partition("=") for token in tokens)
    return TrialRecord(
        number=int(row["number"]),
        route=BuildRoute(tuple((name, value) for name, _, value in pairs)),
        outcome=TrialOutcome(row["outcome"]),
        value_ms=_figure(row["latency_ms"]),
        violation=_figure(row["violation"]),
        fingerprint=str(row["fingerprint"]),
        unchanged=bool(row["unchanged"]),
        half_width=_figure(row["half_width"]),
        seconds={str(name): float(value) for name, value in row["seconds"].items()},
        message=str(row["message"]),
        reason=str(row["reason"]),
        over_limits=tuple(map(str, row.get("over_limits", ()))),
    )


def _figure(value: object) -> float | None:
    return None if value is None else float(str(value))


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
