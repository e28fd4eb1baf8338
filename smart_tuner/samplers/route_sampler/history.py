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


@dataclass(frozen=True, slots=True)
class _Ended:
    """One finished trial; see :class:`TrialView`."""

    route: Route
    log_ms: float
    failed: bool
    violated: bool
    constraints: Mapping[str, float]
    unchanged: bool


class TrialReader:
    """Reads studies, each finished trial once.

    What was read is kept only together with the very trial that it was read from, and a finished
    trial never changes: so a reader that is new and one that has read before give equal views.

    Args:
        space: What to read of each trial.
    """

    def __init__(self, space: RouteSpace) -> None:
        self._space = space
        self._kept: dict[int, tuple[FrozenTrial, _Ended | None]] = {}

    def read(self, study: optuna.Study, number: int) -> TrialView:
        """Read a study; trials of other spaces and those closed as FAIL are left out.

        Args:
            study: The study.
            number: The trial to propose for, which is left out.
        """
        trials = [trial for trial in study.get_trials(deepcopy=False) if trial.number != number]
        ended = [self._ended(trial) for trial in trials if trial.state in ENDED]
        mine = [row for row in ended if row is not None]
        waiting = (
            self._space.encode(_params(trial, self._space))
            for trial in trials
            if trial.state in PENDING
        )
        pending = tuple(route for route in waiting if route is not None)
        routes = tuple(row.route for row in mine)
        return TrialView(
            routes=routes,
            log_ms=np.array([row.log_ms for row in mine], dtype=float),
            failed=np.array([row.failed for row in mine], dtype=bool),
            violated=np.array([row.violated for row in mine], dtype=bool),
            constraints=_columns([row.constraints for row in mine]),
            unchanged=np.array([row.unchanged for row in mine], dtype=bool),
            pending=pending,
            known=frozenset(routes + pending),
        )

    def _ended(self, trial: FrozenTrial) -> _Ended | None:
        kept = self._kept.get(trial.number)
        if kept is None or kept[0] is not trial:
            kept = (trial, _read(trial, self._space.encode(trial.params)))
            self._kept[trial.number] = kept
        return kept[1]


def _read(trial: FrozenTrial, route: Route | None) -> _Ended | None:
    if route is None:
        return None
    constraints = trial.constraints
    failed = _is_failed(trial, constraints)
    return _Ended(
        route=route,
        log_ms=_log_ms(trial),
        failed=failed,
        violated=not failed and any(value > 0 for value in constraints.values()),
        constraints={k: v for k, v in constraints.items() if k not in FAILURE_KEYS},
        unchanged=_is_unchanged(trial),
    )


def _params(trial: FrozenTrial, space: RouteSpace) -> Mapping[str, object]:
    """A pending trial's values, and what is proposed or queued for it."""
    queued = trial.system_attrs.get("fixed_params", {})
    published = trial.system_attrs.get(PROPOSAL)
    if isinstance(published, dict):
        queued = {**space.decode(space.default), **published.get("route", {}), **queued}
    return {**queued, **trial.params}


def _is_failed(trial: FrozenTrial, constraints: Mapping[str, float]) -> bool:
    if trial.state is TrialState.PRUNED or trial.value is None or not math.isfinite(trial.value):
        return True
    return any(constraints.get(key, 0.0) > 0 for key in FAILURE_KEYS)


def _columns(rows: Sequence[Mapping[str, float]]) -> Mapping[str, npt.NDArray[np.float64]]:
    keys = dict.fromkeys((ACCURACY, *(key for row in rows for key in row)))
    return {key: np.array([row.get(key, math.nan) for row in rows], dtype=float) for key in keys}


def _is_unchanged(trial: FrozenTrial) -> bool:
    return bool(trial.user_attrs.get(UNCHANGED, False))


def _log_ms(trial: FrozenTrial) -> float:
    value = trial.value if trial.state is TrialState.COMPLETE else None
    is_known = trial.user_attrs.get(MEASURED, True) or _is_unchanged(trial)
    if value is None or not is_known:
        return math.nan
    return math.log(value) if math.isfinite(value) and value > 0 else math.nan
