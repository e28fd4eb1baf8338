"""What all trials of a study have in common."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from smart_tuner.validate.constraint import AccuracyConstraint
from smart_tuner.validate.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class EvaluatorOptions:
    """How routes are built, judged and measured.

    Attributes:
        backend: Name of an installed backend, or ``module:Class``.
        base: The user's production configuration that routes are tried on.
        constraint: The accuracy constraint.
        limits: Limits on an engine beside its accuracy.
        build_timeout_seconds: Deadline of one build.
        run_timeout_seconds: Deadline of one request that runs the engine: loading it, checking one
            reference pair, timing one block.
        memory_limit_bytes: Resident memory of one child process with all that it starts.
        reference_from_baseline: Let the baseline make missing reference outputs, instead of an
            engine with every optimization off.
        precision: Folder that models are rewritten from, for routes that lower regions.
        on_wait: Gets one line when the device is taken by another study or process.
        python: Interpreter of the child processes, of an environment that has this version of
            smart_tuner; empty for this one, with its import path.
    """

    backend: str
    base: Mapping[str, str] = field(default_factory=dict)
    constraint: AccuracyConstraint = field(default_factory=AccuracyConstraint)
    limits: Limits = field(default_factory=Limits)
    build_timeout_seconds: float = 600.0
    run_timeout_seconds: float = 300.0
    memory_limit_bytes: int | None = None
    reference_from_baseline: bool = False
    precision: Path | None = None
    on_wait: Callable[[str], None] | None = None
    python: str = ""
