"""What one knob value, one pair of values or one gate does in a simulated compiler."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Failure(str, Enum):
    """How a route breaks, in the order in which a compiler would meet it: the first one counts.

    The names are stored: add, never rename.
    """

    NOT_APPLIED = "not_applied"
    BUILD_ERROR = "build_error"
    ABORT = "abort"
    SEGFAULT = "segfault"
    HANG = "hang"
    RUN_ERROR = "run_error"
    NAN = "nan"

    @property
    def outcome(self) -> str:
        """The trial outcome that this failure leads to, as ``TrialOutcome`` spells it."""
        return _OUTCOMES[self]


_OUTCOMES = {
    Failure.NOT_APPLIED: "not_applied",
    Failure.BUILD_ERROR: "build_failed",
    Failure.ABORT: "build_failed",
    Failure.SEGFAULT: "build_failed",
    Failure.HANG: "timed_out",
    Failure.RUN_ERROR: "run_failed",
    Failure.NAN: "infeasible",
}


@dataclass(frozen=True, slots=True)
class ValueEffect:
    """What a value that is not the default does; values without an entry do nothing.

    Attributes:
        knob: Name of the knob.
        value: One of its values, not the default.
        log_latency: Added to the natural logarithm of the latency; negative is faster.
        loss: Added to the accuracy loss (``l1`` and ``linf`` alike), >= 0.
        log_build: Added to the natural logarithm of the build time.
        failure: How a route with this value breaks; ``None`` when it does not.
        noop: The engine stays the same, byte for byte; nothing else may be set then.
    """

    knob: str
    value: str
    log_latency: float = 0.0
    loss: float = 0.0
    log_build: float = 0.0
    failure: Failure | None = None
    noop: bool = False


@dataclass(frozen=True, slots=True)
class PairEffect:
    """What two values do together, on top of what each of them does.

    Attributes:
        first: Knob and value, not the default.
        second: Value of another knob, not the default.
        log_latency: Added to the natural logarithm of the latency when both are set.
        failure: How a route with both breaks; ``None`` when it does not.
    """

    first: tuple[str, str]
    second: tuple[str, str]
    log_latency: float = 0.0
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class Gate:
    """A child knob that acts only while its parent has one certain value.

    Attributes:
        child: Name of the form ``parent:...``.
        parent: Name of the parent knob; its own gate must be open too.
        opened_by: The parent's value, default or not, under which the child acts.
    """

    child: str
    parent: str
    opened_by: str


@dataclass(frozen=True, slots=True)
class Noise:
    """The two noises, as standard deviations of the natural logarithm, and what is not normal.

    The defaults are measured ones: rebuilding one route on TensorRT 8.6 moved the latency by
    0.9 %, measuring one engine twice on a quiet GPU by 0.3 %. Spikes and drift are assumptions.

    Attributes:
        build: Drawn once an engine.
        measurement: Drawn once a sample.
        spike_rate: Probability that a sample is disturbed.
        spike_size: Mean of the exponentially distributed extra time of such a sample, as a share
            of the latency.
        drift: Amplitude of a slow sine on the logarithm of the latency.
        drift_period_seconds: Its period.
    """

    build: float = 0.009
    measurement: float = 0.003
    spike_rate: float = 0.01
    spike_size: float = 0.3
    drift: float = 0.0
    drift_period_seconds: float = 600.0


@dataclass(frozen=True, slots=True)
class Observation:
    """What one trial of a route shows: all that a sampler may learn from it.

    Attributes:
        outcome: As ``TrialOutcome`` spells it: ``feasible``, ``build_failed`` ...
        latency_ms: Noisy latency; ``None`` when the engine was not built, did not run or gave
            NaN: such an engine is not measured.
        loss: Accuracy loss, infinite for NaN outputs; ``None`` when the engine did not run.
        build_seconds: What the attempt cost, the time limit included when it hung.
        unchanged: The engine is the default's: not measured, the latency is the true one.
    """

    outcome: str
    latency_ms: float | None
    loss: float | None
    build_seconds: float
    unchanged: bool = False
