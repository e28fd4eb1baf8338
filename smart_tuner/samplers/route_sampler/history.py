"""What a sampler knows: the study's finished and pending trials, read afresh at every ask."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from optuna.trial import TrialState

from smart_tuner.samplers.route_sampler.keys import (
    ACCURACY,
    FAILURE_KEYS,
    MEASURED,
    PROPOSAL,
    UNCHANGED,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt
    import optuna
    from optuna.trial import FrozenTrial

    from smart_tuner.samplers.route_sampler.space import Route, RouteSpace

ENDED = (TrialState.COMPLETE, TrialState.PRUNED)
PENDING = (TrialState.RUNNING, TrialState.WAITING)


@dataclass(frozen=True, slots=True)
class TrialView:
    """Finished trials as columns, by trial number, and every route that is taken.

    Attributes:
        routes: Route of each finished trial.
        log_ms: ln(milliseconds); NaN without a latency.
        failed: Not built, not run, not applied, out of time, or told an infinite value.
        violated: Ran, but broke a constraint.
        constraints: Values of each continuous constraint, by key; NaN where there is none.
        unchanged: The engine is the baseline's.
        pending: Routes that run or wait in the queue.
        known: Routes of all of these.
    """

    routes: tuple[Route, ...]
    log_ms: npt.NDArray[np.float64]
    failed: npt.NDArray[np.bool_]
    violated: npt.NDArray[np.bool_]
    constraints: Mapping[str, npt.NDArray[np.float64]]
    unchanged: npt.NDArray[np.bool_]
    pending: tuple[Route, ...]
    known: frozenset[Route]

    @property
    def feasible(self) -> npt.NDArray[np.bool_]:
        """Ran within every constraint, with a latency."""
        return ~self.failed & ~self.violated & np.isfinite(self.log_ms)

    def incumbent(self, default: Route) -> Route:
        """The fastest feasible route; the default if there is none.

        Of equals the one with the fewest changes, then the earliest: an engine that is the same
        as the baseline's must not drag its values along.
        """
        if not self.feasible.any():
            return default
        fastest = self.log_ms[self.feasible].min()
        equals = np.flatnonzero(self.feasible & (self.log_ms == fastest))
        return min((self.routes[int(row)] for row in equals), key=lambda r: distance(r, default))

    def log_ratio(self, default: Route) -> npt.NDArray[np.float64]:
        """ln(latency / latency of the default route), the median route's if that is missing."""
        measured = np.isfinite(self.log_ms)
        if not measured.any():
            return self.log_ms
        is_default = np.array([route == default for route in self.routes]) & measured
        zero = self.log_ms[is_default] if is_default.any() else self.log_ms[measured]
        return np.asarray(self.log_ms - np.median(zero))


def distance(route: Route, other: Route) -> int:
    """Number of knobs at which two routes differ."""
    return sum(choice != other[knob] for knob, choice in enumerate(route))


def view_trials(study: optuna.Study, space: RouteSpace, number: int) -> TrialView:
    """Read a study; trials of other spaces and those closed as FAIL are left out.

    Args:
        study: The study.
        space: What to read of each trial.
        number: The trial to propose for, which is left out.
    """
    trials = [trial for trial in study.get_trials(deepcopy=False) if trial.number != number]
    read = [(trial, space.encode(_params(trial, space))) for trial in trials]
    mine = [(trial, route) for trial, route in read if route is not None]
    ended = [(trial, route) for trial, route in mine if trial.state in ENDED]
    pending = tuple(route for trial, route in mine if trial.state in PENDING)
    constraints = [trial.constraints for trial, _ in ended]
    failed = np.array(
        [_is_failed(trial, c) for (trial, _), c in zip(ended, constraints, strict=True)],
        dtype=bool,
    )
    broken = np.array(
        [any(value > 0 for value in row.values()) for row in constraints], dtype=bool
    )
    routes = tuple(route for _, route in ended)
    return TrialView(
        routes=routes,
        log_ms=np.array([_log_ms(trial) for trial, _ in ended], dtype=float),
        failed=failed,
        violated=broken & ~failed,
        constraints=_continuous(constraints),
        unchanged=np.array([_is_unchanged(trial) for trial, _ in ended], dtype=bool),
        pending=pending,
        known=frozenset(routes + pending),
    )


def _params(trial: FrozenTrial, space: RouteSpace) -> Mapping[str, object]:
    """A trial's values; for a pending one also what is proposed or queued for it."""
    if trial.state not in PENDING:
        return trial.params
    queued = trial.system_attrs.get("fixed_params", {})
    published = trial.system_attrs.get(PROPOSAL)
    if isinstance(published, dict):
        queued = {**space.decode(space.default), **published.get("route", {}), **queued}
    return {**queued, **trial.params}


def _is_failed(trial: FrozenTrial, constraints: Mapping[str, float]) -> bool:
    if trial.state is TrialState.PRUNED or trial.value is None or not math.isfinite(trial.value):
        return True
    return any(constraints.get(key, 0.0) > 0 for key in FAILURE_KEYS)


def _continuous(
    constraints: Sequence[Mapping[str, float]],
) -> Mapping[str, npt.NDArray[np.float64]]:
    keys = dict.fromkeys((ACCURACY, *(key for row in constraints for key in row)))
    return {
        key: np.array([row.get(key, math.nan) for row in constraints], dtype=float)
        for key in keys
        if key not in FAILURE_KEYS
    }


def _is_unchanged(trial: FrozenTrial) -> bool:
    return bool(trial.user_attrs.get(UNCHANGED, False))


def _log_ms(trial: FrozenTrial) -> float:
    value = trial.value if trial.state is TrialState.COMPLETE else None
    is_known = trial.user_attrs.get(MEASURED, True) or _is_unchanged(trial)
    if value is None or not is_known:
        return math.nan
    return math.log(value) if math.isfinite(value) and value > 0 else math.nan
