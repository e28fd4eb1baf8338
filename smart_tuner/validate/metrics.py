"""Accuracy metrics: trtexec's five, those of tasks, and the user's own."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

import numpy as np

from smart_tuner.errors import UserInputError
from smart_tuner.validate.constraint import (
    BUILT_IN,
    METRIC_ENTRY_POINTS,
    METRIC_NAMES,
    AccuracyConstraint,
)
from smart_tuner.validate.elements import differences, is_same_non_finite, numbers
from smart_tuner.validate.task_metrics import cosine_distances, embedding, top1

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    Tensor = npt.NDArray[Any]
    Numbers = npt.NDArray[np.float64]

Metric = Callable[["Tensor", "Tensor", AccuracyConstraint], float]
"""(reference, actual, constraint) -> loss, 0 is perfect; shapes are equal."""

API_VERSION = 1


@dataclass(frozen=True, slots=True)
class _Pair:
    """The elements that are judged: finite on both sides, flat, in float64."""

    reference: Numbers
    actual: Numbers
    difference: Numbers


def _judged_elements(reference: Tensor, actual: Tensor) -> _Pair | None:
    """Leave out equal NaN and infinities; ``None`` if any other element is not finite."""
    expected, given = numbers(reference), numbers(actual)
    finite = np.isfinite(expected) & np.isfinite(given)
    if not np.all(finite | is_same_non_finite(expected, given)):
        return None
    difference = differences(reference, actual)
    return _Pair(expected[finite], given[finite], difference[finite])


def _closed(figure: Callable[[_Pair, AccuracyConstraint], float]) -> Metric:
    """Close the holes that trtexec leaves: NaN, infinity, and tensors without elements."""

    def metric(reference: Tensor, actual: Tensor, constraint: AccuracyConstraint) -> float:
        pair = _judged_elements(reference, actual)
        if pair is None:
            return math.inf
        if pair.difference.size == 0:
            return 0.0
        with np.errstate(all="ignore"):
            return figure(pair, constraint)

    return metric


def _l0(pair: _Pair, constraint: AccuracyConstraint) -> float:
    """Share of elements with |a - r| > atol + rtol * |r|."""
    tolerance = constraint.atol + constraint.rtol * np.abs(pair.reference)
    return float(np.count_nonzero(pair.difference > tolerance)) / pair.difference.size


def _l1(pair: _Pair, _: AccuracyConstraint) -> float:
    """Mean |a - r|."""
    return float(pair.difference.mean())


def _l2(pair: _Pair, _: AccuracyConstraint) -> float:
    """Mean (a - r)^2; no root, as in trtexec."""
    return float(np.square(pair.difference).mean())


def _linf(pair: _Pair, _: AccuracyConstraint) -> float:
    """Largest |a - r|."""
    return float(pair.difference.max())


def _cos(pair: _Pair, _: AccuracyConstraint) -> float:
    """1 - cosine of the angle between the tensors, each taken as one vector, 0 to 2."""
    return float(cosine_distances(pair.reference[None, :], pair.actual[None, :])[0])


METRICS: Mapping[str, Metric] = dict(
    zip(METRIC_NAMES, map(_closed, (_l0, _l1, _l2, _linf, _cos)), strict=True)
)

TASK_METRICS: Mapping[str, Metric] = {
    "mae": METRICS["l1"],
    "top1": lambda reference, actual, _: top1(reference, actual),
    "embedding": lambda reference, actual, _: embedding(reference, actual),
}
"""Losses in the words of the task; ``mae`` is in the output's own unit."""


@dataclass(frozen=True, slots=True)
class UserMetric:
    """A metric of the user: ``function(reference, actual) -> float``, 0 is perfect.

    The function gets one output of one reference pair: the trusted tensor and the engine's, whole,
    as numpy arrays of one shape and type. Elements that are not finite stand at the same places in
    both. It returns a number, 0 or more; larger is worse, infinity is never acceptable. It is
    imported in the child process that runs the engine, never in the study's own.

    Attributes:
        name: As the user wrote it.
        function: The callable.
    """

    name: str
    function: Callable[[Tensor, Tensor], object]

    def __call__(self, reference: Tensor, actual: Tensor, _: AccuracyConstraint) -> float:
        """Call the function and check what it returns.

        Raises:
            UserInputError: It raised, or returned something other than a number, 0 or more.
        """
        try:
            figure = self.function(reference, actual)
        except Exception as error:
            msg = f"Metric {self.name!r} raised {type(error).__name__}: {error}"
            raise UserInputError(msg) from error
        loss = math.nan
        if hasattr(figure, "__float__") and not isinstance(figure, bool | np.bool_):
            try:
                loss = float(figure)
            except (TypeError, ValueError):
                loss = math.nan
        if not loss >= 0:
            msg = f"Metric {self.name!r} returned {figure!r}: return a number, 0 for perfect."
            raise UserInputError(msg)
        return loss


def resolve_metric(name: str) -> Metric:
    """Find a metric: one that is built in, ``module:function``, or an installed one by its name.

    Raises:
        UserInputError: There is no such metric, module or function.
    """
    if name in METRICS:
        return METRICS[name]
    if name in TASK_METRICS:
        return TASK_METRICS[name]
    function = _imported(name) if ":" in name else _installed(name)
    if not callable(function):
        msg = f"Metric {name!r} is a {type(function).__name__}, not a function."
        raise UserInputError(msg)
    return UserMetric(name, function)


def _imported(name: str) -> object:
    module_name, _, path = name.partition(":")
    try:
        found: object = import_module(module_name)
    except ModuleNotFoundError as error:
        msg = f"Metric {name!r}: no module {error.name!r}; put its folder on PYTHONPATH."
        raise UserInputError(msg) from error
    except Exception as error:
        msg = f"Metric {name!r}: importing {module_name!r} raised {type(error).__name__}: {error}"
        raise UserInputError(msg) from error
    for part in path.split("."):
        if not hasattr(found, part):
            msg = f"Metric {name!r}: module {module_name!r} has no function {path!r}."
            raise UserInputError(msg)
        found = getattr(found, part)
    return found


def _installed(name: str) -> object:
    found = {entry.name: entry for entry in entry_points(group=METRIC_ENTRY_POINTS)}
    if name not in found:
        known = ", ".join([*BUILT_IN, *sorted(found)])
        msg = f"Unknown accuracy metric {name!r}: give one of {known}, or module:function."
        raise UserInputError(msg)
    function: object = found[name].load()
    version = getattr(function, "api_version", API_VERSION)
    if version != API_VERSION:
        msg = f"Metric {name!r} speaks API {version}, this version speaks {API_VERSION}."
        raise UserInputError(msg)
    return function
