"""Accuracy losses, one figure an output."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OutputLoss:
    """How far one output is from the reference, on one reference pair.

    Attributes:
        point: Name of the workload point.
        pair: Name of the reference pair.
        output: Name of the output.
        metric: The metric that was used on this output (``mismatch`` for ids and text).
        loss: 0 is perfect; infinite where the output has the wrong shape or type, or is not
            finite where the reference is.
        epsilon: The limit for this output; the output is acceptable iff ``loss <= epsilon``.
        message: Why the loss is infinite; else empty.
    """

    point: str
    pair: str
    output: str
    metric: str
    loss: float
    epsilon: float
    message: str = ""
