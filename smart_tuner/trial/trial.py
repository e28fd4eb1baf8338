"""The record of one evaluated route."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_tuner.engine.build import Engine
    from smart_tuner.measure.latency import Comparison
    from smart_tuner.route.build_route import BuildRoute
    from smart_tuner.validate.limits import LimitUse
    from smart_tuner.validate.losses import OutputLoss


class TrialOutcome(str, Enum):
    """How a trial ended. Values are stored: add, never rename."""

    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    BUILD_FAILED = "build_failed"
    RUN_FAILED = "run_failed"
    TIMED_OUT = "timed_out"
    NOT_APPLIED = "not_applied"


@dataclass(frozen=True, slots=True)
class Trial:
    """One route, built, validated and measured.

    Attributes:
        route: What was tried.
        outcome: How it ended.
        engine: The engine, if it was built.
        losses: One entry an output and search pair, if the engine ran.
        comparisons: One entry a workload point, if it was measured.
        unchanged: The engine is the baseline's by fingerprint, or by a structure that has proven
            to tell: no effect, not measured.
        message: Why it ended so, one line; empty for a plain success.
        seconds: Wall-clock seconds by phase: ``build``, ``validate``, ``measure``, ``total``, as
            far as it came; ``wait`` is what another study's measurements took.
        limits: One entry a limit that is set, if the engine ran.
        is_alike: The compiler describes the engine as it does the baseline's, though the files
            differ.
        starts: Unix time at which phases of ``seconds`` began, by this machine's clock: shows
            what ran beside what where several workers share a device.
    """

    route: BuildRoute
    outcome: TrialOutcome
    engine: Engine | None = None
    losses: tuple[OutputLoss, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    unchanged: bool = False
    message: str = ""
    seconds: Mapping[str, float] = field(default_factory=dict)
    limits: tuple[LimitUse, ...] = ()
    is_alike: bool = False
    starts: Mapping[str, float] = field(default_factory=dict)
