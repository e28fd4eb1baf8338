"""Writes a tuning cache as trtexec writes it: same keys, same order, no spaces, LF.

Numbers that trtexec keeps as float32 are rounded to it and widened, as its JSON shows them.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from smart_tuner.storages.tuning_cache_row import LOST_RESULT, METRICS, trtexec_threshold
from smart_tuner.trial.trial import TrialOutcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from smart_tuner.storages.tuning_cache_row import CacheRow

ACCURACY_FAILED = "child exited with status 1"
"""What trtexec writes when a child measured a route and refused its accuracy."""

_QUOTED = frozenset(" \t|[]{}()&;'\"\\")


@dataclass(frozen=True, slots=True)
class CacheRun:
    """What the header says.

    Attributes:
        tuner_version: Of the knob database.
        metric: Our name of the accuracy metric; one that trtexec lacks means no accuracy check.
        atol: Absolute tolerance of l0.
        rtol: Relative tolerance of l0.
        epsilon: Largest loss that we accept; infinite for no check.
        search: ``fast``, ``full`` or ``mixed``.
        command: trtexec's arguments, its own name first, paths as given.
        model: Absolute path of the ONNX file.
        engine: Where the engine goes, as given.
        defaults: The default of every knob.
        expression: What was swept.
    """

    tuner_version: str
    metric: str
    atol: float
    rtol: float
    epsilon: float
    search: str
    command: Sequence[str]
    model: str
    engine: str
    defaults: Mapping[str, str]
    expression: str


def cache_lines(run: CacheRun, rows: Iterable[CacheRow]) -> Iterator[str]:
    """The lines of a tuning cache, each with its line end."""
    yield _dump(_header(run))
    for row in rows:
        yield _dump(_row(row))


def trtexec_quoted(words: Iterable[str]) -> str:
    """A command line quoted as trtexec quotes it, which leaves ``$`` and ``*`` bare."""
    return " ".join(
        "'" + word.replace("'", "'\\''") + "'" if _QUOTED.intersection(word) else word
        for word in words
    )


def _header(run: CacheRun) -> dict[str, Any]:
    is_checked = run.metric in METRICS and math.isfinite(run.epsilon)
    return {
        "tuner_version": run.tuner_version,
        "accuracy_algorithm": METRICS.get(run.metric, METRICS["l0"]),
        "accuracy_parameter": {
            "atol": float(np.float32(run.atol)),
            "rtol": float(np.float32(run.rtol)),
            "epsilon": trtexec_threshold(run.epsilon) if is_checked else 0.0,
        },
        "searching_algorithm": run.search,
        "command_line": trtexec_quoted(run.command),
        "default_build_route": route_text(run.defaults),
        "tuning_expr": run.expression,
        "files": {"onnx": run.model, "save_engine": run.engine},
        "argv": [
            f"--onnx={run.model}" if word.startswith("--onnx=") else word for word in run.command
        ],
    }


def route_text(settings: Mapping[str, str]) -> str:
    """A route in the order of its settings, as ``--setBuildRoute`` takes it."""
    return " ".join(f"-{name}={value}" for name, value in settings.items())


def _row(row: CacheRow) -> dict[str, Any]:
    """One row; a loss that is not finite makes trtexec lose the child's result."""
    finite = all(math.isfinite(loss) for loss in row.losses.values())
    measured = row.outcome in (TrialOutcome.FEASIBLE, TrialOutcome.INFEASIBLE)
    crashed = not (measured and finite)
    message = row.message
    if row.outcome is TrialOutcome.INFEASIBLE:
        message = ACCURACY_FAILED if finite else f"{LOST_RESULT}: a loss is not finite"
    return {
        "iter": row.number,
        "build_route": route_text(dict(row.settings)),
        "crash": crashed,
        "error_message": message,
        "accuracy_loss": dict(row.losses) if row.losses and not crashed else None,
        "gpu_time": None if crashed else row.gpu_ms,
    }


def _dump(data: Mapping[str, Any]) -> str:
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False) + "\n"
