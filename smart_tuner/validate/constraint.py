"""The accuracy constraint: which metric, how much of it is acceptable; as text and JSON too."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Protocol, cast

from smart_tuner.errors import UserInputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

METRIC_NAMES = ("l0", "l1", "l2", "linf", "cos")
METRIC_ENTRY_POINTS = "smart_tuner.metrics"

ID_EPSILON = 1e-3
"""Largest share of wrong ids under metrics whose epsilon is not a share: one in a thousand."""

_USER_METRIC = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")

_ITEM = re.compile(
    r"""\s*
    (?:(?: (?P<quoted>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*") | (?P<plain>[^,'"][^,]*) )\s*:)?
    (?P<number>[^,:'"]*)
    (?:,|\Z)""",
    re.VERBOSE | re.DOTALL,
)

_KEYS = ("metric", "epsilon", "per_output", "rtol", "atol")


@dataclass(frozen=True, slots=True)
class AccuracyConstraint:
    """An engine is feasible when every output's loss is at most its epsilon.

    Attributes:
        metric: ``l0``, ``l1``, ``l2``, ``linf``, ``cos``, ``module:function``, or the name of an
            installed metric. Ids (integers, booleans) and text are always judged by agreement.
        epsilon: Limit for outputs that have none of their own, >= 0. 0 compares bytes, whatever
            the metric; infinity accepts any finite error, but no wrong shape or type and nothing
            that is not finite where the reference is.
        per_output: Epsilon by output name.
        rtol: Relative tolerance of ``l0``.
        atol: Absolute tolerance of ``l0``.

    The defaults read: at most one element in a thousand may lie outside ``atol + rtol * |r|``.

    Raises:
        UserInputError: A value is out of range, or nobody knows the metric.
    """

    metric: str = "l0"
    epsilon: float = 1e-3
    per_output: Mapping[str, float] = field(default_factory=dict)
    rtol: float = 1e-3
    atol: float = 1e-4

    def __post_init__(self) -> None:
        # trtexec writes lInf; one spelling is kept, so that equal constraints compare equal.
        is_built_in = self.metric.lower() in METRIC_NAMES
        object.__setattr__(self, "metric", self.metric.lower() if is_built_in else self.metric)
        if not is_built_in:
            _check_metric(self.metric)
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

    def epsilon_for(self, output: str, *, holds_ids: bool = False) -> float:
        """The limit for one output.

        Ids and text are judged by the share of elements that differ. An output's own epsilon is
        that share; so is the global one under ``l0``, which is a share itself. Under any other
        metric the global epsilon has another unit: ids may then differ in one of a thousand at
        most, and in no more than epsilon says. An infinite epsilon stays infinite.

        Args:
            output: Name of the output.
            holds_ids: Whether the output is judged by agreement.
        """
        if output in self.per_output:
            return self.per_output[output]
        if holds_ids and self.metric != "l0" and math.isfinite(self.epsilon):
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


def _check_metric(name: str) -> None:
    if _USER_METRIC.fullmatch(name):
        return
    installed = sorted(entry.name for entry in entry_points(group=METRIC_ENTRY_POINTS))
    if name not in installed:
        known = ", ".join([*METRIC_NAMES, *installed])
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


def parse_epsilons(texts: Sequence[str]) -> tuple[float | None, dict[str, float]]:
    """Read ``--epsilon`` values: ``0.01``, ``boxes:0.5``, ``inf``.

    Several in one text are split at commas. The last colon separates name and number, so names
    may hold colons. Hostile names are quoted as in ``--shapes``: a name with a comma, a quote at
    its start, or blanks at its ends goes in single or double quotes, where a backslash takes the
    next character literally.

    Returns:
        The global epsilon, ``None`` if none was given, and epsilon by output name.

    Raises:
        UserInputError: A number is missing, wrong or negative, or one limit is given twice.
    """
    limits: dict[str | None, float] = {}
    for text in texts:
        for name, number in _split(text):
            limit = _parse_number(number, text)
            if name in limits:
                whose = "The global epsilon" if name is None else f"The epsilon of output {name!r}"
                msg = f"{whose} is given twice; give it once."
                raise UserInputError(msg)
            limits[name] = limit
    per_output = {name: limit for name, limit in limits.items() if name is not None}
    return limits.get(None), per_output


def _split(text: str) -> Iterator[tuple[str | None, str]]:
    """Name, ``None`` for the global limit, and number of each item of one text."""
    position = 0
    while True:
        item = _ITEM.match(text, position)
        if item is None:
            msg = f"Cannot read the epsilon {text!r}: write 0.01 or output:0.01."
            raise UserInputError(msg)
        yield _name(item), item["number"]
        position = item.end()
        if not item[0].endswith(","):
            return


def _name(item: re.Match[str]) -> str | None:
    if item["quoted"] is not None:
        return re.sub(r"\\(.)", r"\1", item["quoted"][1:-1], flags=re.DOTALL)
    return None if item["plain"] is None else item["plain"].rstrip()


def _parse_number(number: str, text: str) -> float:
    try:
        limit = float(number)
    except ValueError:
        limit = math.nan
    if not limit >= 0:
        msg = f"{number.strip()!r} in the epsilon {text!r} is not a number, 0 or more."
        raise UserInputError(msg)
    return limit


def constraint_to_json(constraint: AccuracyConstraint) -> dict[str, object]:
    """Plain JSON types; an infinite epsilon, which JSON has no number for, is ``"inf"``."""
    return {
        "metric": constraint.metric,
        "epsilon": _to_json(constraint.epsilon),
        "per_output": {name: _to_json(limit) for name, limit in constraint.per_output.items()},
        "rtol": constraint.rtol,
        "atol": constraint.atol,
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
    unknown = sorted(set(data) - set(_KEYS))
    per_output = data.get("per_output", {})
    metric = data.get("metric", "l0")
    if unknown or not isinstance(per_output, dict) or not isinstance(metric, str):
        msg = (
            f"Not an accuracy constraint: it has the keys {', '.join(_KEYS)}; got {dict(data)!r}."
        )
        raise UserInputError(msg)
    values = {name: _from_json(data[name]) for name in ("epsilon", "rtol", "atol") if name in data}
    limits = {str(name): _from_json(limit) for name, limit in per_output.items()}
    # The constructor checks the numbers, whatever type they came as.
    numbers = cast("dict[str, float]", values)
    return AccuracyConstraint(
        metric=metric, per_output=cast("dict[str, float]", limits), **numbers
    )
