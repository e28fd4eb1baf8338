"""The accuracy constraint: which metric, how much of it is acceptable; as JSON too."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Protocol, cast

from smart_tuner.errors import UserInputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    Texts = Mapping[str, str]

METRIC_NAMES = ("l0", "l1", "l2", "linf", "cos")
TASK_METRIC_NAMES = ("mae", "top1", "embedding")
BUILT_IN = (*METRIC_NAMES, *TASK_METRIC_NAMES)
SHARES = frozenset(("l0", "top1"))
"""Metrics whose loss is a share of what is compared, as that of ids is."""

WORST, MEAN = "worst", "mean"
OVER_PAIRS = (WORST, MEAN)
"""Which loss over the reference pairs of a point keeps epsilon."""

METRIC_ENTRY_POINTS = "smart_tuner.metrics"

ID_EPSILON = 1e-3
"""Largest share of wrong ids under metrics whose epsilon is not a share: one in a thousand."""

_USER_METRIC = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")

_KEYS = ("metric", "epsilon", "per_output", "rtol", "atol", "metrics", "over_pairs")


@dataclass(frozen=True, slots=True)
class AccuracyConstraint:
    """An engine is feasible when every output's loss is at most its epsilon.

    Attributes:
        metric: One of ``BUILT_IN``, ``module:function``, or the name of an installed metric, for
            outputs that have none of their own. Ids (integers, booleans) and text are always
            judged by agreement.
        epsilon: Limit for outputs that have none of their own, >= 0. 0 compares bytes, whatever
            the metric; infinity accepts any finite error, but no wrong shape or type, nothing
            that is not finite where the reference is, and no constant where that varies.
        per_output: Epsilon by output name.
        rtol: Relative tolerance of ``l0``.
        atol: Absolute tolerance of ``l0``.
        metrics: Metric by output name; such an output needs an epsilon of its own.
        over_pairs: ``worst``: every reference pair keeps epsilon. ``mean``: the mean loss over the
            pairs of a point does, and each pair is finite.

    The defaults read: at most one element in a thousand may lie outside ``atol + rtol * |r|``.

    Raises:
        UserInputError: A value is out of range, or nobody knows the metric.
    """

    metric: str = "l0"
    epsilon: float = 1e-3
    per_output: Mapping[str, float] = field(default_factory=dict)
    rtol: float = 1e-3
    atol: float = 1e-4
    metrics: Mapping[str, str] = field(default_factory=dict)
    over_pairs: str = WORST

    def __post_init__(self) -> None:
        object.__setattr__(self, "metric", _settled(self.metric))
        own = {output: _settled(metric) for output, metric in self.metrics.items()}
        object.__setattr__(self, "metrics", own)
        if self.over_pairs not in OVER_PAIRS:
            msg = f"over_pairs is {self.over_pairs!r}: give one of {', '.join(OVER_PAIRS)}."
            raise UserInputError(msg)
        object.__setattr__(self, "epsilon", _checked_limit("epsilon", self.epsilon))
        limits = {
            name: _checked_limit(f"epsilon of output {name!r}", limit)
            for name, limit in self.per_output.items()
        }
        object.__setattr__(self, "per_output", limits)
        for name in ("rtol", "atol"):
            tolerance = _checked_limit(name, getattr(self, name))
            if math.isinf(tolerance):
                msg = f"{name} is infinite: give a finite number, 0 or more."
                raise UserInputError(msg)
            object.__setattr__(self, name, tolerance)
        self._check_own_epsilons()

    def _check_own_epsilons(self) -> None:
        """The global epsilon is in the unit of the global metric, and of no other."""
        for output, metric in self.metrics.items():
            is_same = metric == self.metric or math.isinf(self.epsilon)
            if output not in self.per_output and not is_same:
                msg = (
                    f"Output {output!r} has a metric of its own, {metric}: give its epsilon too, "
                    f"e.g. --epsilon {output}:0.01."
                )
                raise UserInputError(msg)

    def metric_for(self, output: str) -> str:
        """The metric of one output, unless it holds ids."""
        return self.metrics.get(output, self.metric)

    def epsilon_for(self, output: str, *, holds_ids: bool = False) -> float:
        """The limit for one output.

        Ids and text are judged by the share of elements that differ. An output's own epsilon is
        that share; so is the global one under a metric of ``SHARES``. Under any other
        metric the global epsilon has another unit: ids may then differ in one of a thousand at
        most, and in no more than epsilon says. An infinite epsilon stays infinite.

        Args:
            output: Name of the output.
            holds_ids: Whether the output is judged by agreement.
        """
        if output in self.per_output:
            return self.per_output[output]
        if holds_ids and self.metric not in SHARES and math.isfinite(self.epsilon):
            return min(self.epsilon, ID_EPSILON)
        return self.epsilon


class _Judged(Protocol):
    @property
    def loss(self) -> float: ...
    @property
    def epsilon(self) -> float: ...


def is_within(loss: float, epsilon: float) -> bool:
    """Whether a loss is acceptable: finite and at most epsilon. NaN never is."""
    return loss <= epsilon and loss < math.inf


def is_acceptable(losses: Iterable[_Judged]) -> bool:
    """Whether every ``OutputLoss`` is finite and at most its epsilon."""
    return all(is_within(judged.loss, judged.epsilon) for judged in losses)


def _settled(name: str) -> str:
    """A metric's name; one spelling is kept, so that equal constraints compare equal.

    trtexec writes lInf.

    Raises:
        UserInputError: Nobody knows the metric.
    """
    if name.lower() in BUILT_IN:
        return name.lower()
    _check_metric(name)
    return name


def _check_metric(name: str) -> None:
    """Look at the name alone: a user's module is imported by the child, never here."""
    if _USER_METRIC.fullmatch(name):
        return
    installed = sorted(entry.name for entry in entry_points(group=METRIC_ENTRY_POINTS))
    if name not in installed:
        known = ", ".join([*BUILT_IN, *installed])
        msg = f"Unknown accuracy metric {name!r}: give one of {known}, or module:function."
        raise UserInputError(msg)


def _checked_limit(name: str, value: object) -> float:
    number = math.nan
    if hasattr(value, "__float__") and not isinstance(value, bool):
        number = float(value)
    if not number >= 0:
        msg = f"{name} is {value!r}: give a number, 0 or more."
        raise UserInputError(msg)
    return number


def constraint_to_json(constraint: AccuracyConstraint) -> dict[str, object]:
    """Plain JSON types; an infinite epsilon, which JSON has no number for, is ``"inf"``."""
    return {
        "metric": constraint.metric,
        "epsilon": _to_json(constraint.epsilon),
        "per_output": {name: _to_json(limit) for name, limit in constraint.per_output.items()},
        "rtol": constraint.rtol,
        "atol": constraint.atol,
        "metrics": dict(constraint.metrics),
        "over_pairs": constraint.over_pairs,
    }


def _to_json(limit: float) -> float | str:
    return "inf" if math.isinf(limit) else limit


def _from_json(limit: object) -> object:
    return math.inf if limit == "inf" else limit


def constraint_from_json(data: Mapping[str, object]) -> AccuracyConstraint:
    """Read what ``constraint_to_json`` wrote; a missing key takes its default.

    Raises:
        UserInputError: A key is unknown, or a value is wrong.
    """
    per_output, metrics = data.get("per_output", {}), data.get("metrics", {})
    metric, over_pairs = data.get("metric", "l0"), data.get("over_pairs", WORST)
    is_read = (
        set(data) <= set(_KEYS)
        and isinstance(per_output, dict)
        and isinstance(metrics, dict)
        and all(isinstance(text, str) for text in (metric, over_pairs, *metrics.values()))
    )
    if not is_read:
        msg = (
            f"Not an accuracy constraint: it has the keys {', '.join(_KEYS)}; got {dict(data)!r}."
        )
        raise UserInputError(msg)
    values = {name: _from_json(data[name]) for name in ("epsilon", "rtol", "atol") if name in data}
    limits = {str(name): _from_json(limit) for name, limit in cast("Texts", per_output).items()}
    # The constructor checks the numbers, whatever type they came as.
    numbers = cast("dict[str, float]", values)
    return AccuracyConstraint(
        metric=str(metric),
        per_output=cast("dict[str, float]", limits),
        metrics=dict(cast("Texts", metrics)),
        over_pairs=str(over_pairs),
        **numbers,
    )
