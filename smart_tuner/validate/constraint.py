"""The accuracy constraint: which metric, how much of it is acceptable."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class AccuracyConstraint:
    """An engine is feasible when every output's loss is at most its epsilon.

    Attributes:
        metric: ``l0``, ``l1``, ``l2``, ``linf``, ``cos``, or ``module:function``.
        epsilon: Limit for outputs that have none of their own; 0 compares bytes.
        per_output: Epsilon by output name.
        rtol: Relative tolerance of ``l0``.
        atol: Absolute tolerance of ``l0``.

    The defaults read: at most one element in a thousand may lie outside ``atol + rtol * |r|``.
    """

    metric: str = "l0"
    epsilon: float = 1e-3
    per_output: Mapping[str, float] = field(default_factory=dict)
    rtol: float = 1e-3
    atol: float = 1e-4
