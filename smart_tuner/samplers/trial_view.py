"""What a sampler knows: the study's finished and pending trials, read afresh at every ask."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from optuna.trial import TrialState

from smart_tuner.storages.keys import MEASURED, PROPOSAL, UNCHANGED

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt
    import optuna
    from optuna.trial import FrozenTrial

    from smart_tuner.samplers.route_space import Route, RouteSpace

ENDED = (TrialState.COMPLETE, TrialState.PRUNED)
PENDING = (TrialState.RUNNING, TrialState.WAITING)


@dataclass(frozen=True, slots=True)
class TrialView:
    """Finished trials as columns, by trial number, and every route that is taken.

    Attributes:
        routes: Route of each finished trial.
        log_ms: ln(milliseconds); NaN without a latency.
        failed: Not built, not run, not applied or out of time.
        violated: Ran, but broke a constraint.
        unchanged: The engine is the baseline's.
        pending: Routes that run or wait in the queue.
        known: Routes of all of these.
    """

    routes: tuple[Route, ...]
    log_ms: npt.NDArray[np.float64]
    failed: npt.NDArray[np.bool_]
    violated: npt.NDArray[np.bool_]
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
    failed = np.array([trial.state is TrialState.PRUNED for trial, _ in ended], dtype=bool)
    broken = np.array([_is_broken(trial) for trial, _ in ended], dtype=bool)
    routes = tuple(route for _, route in ended)
    return TrialView(
        routes=routes,
        log_ms=np.array([_log_ms(trial) for trial, _ in ended], dtype=float),
        failed=failed,
        violated=broken & ~failed,
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


def _is_broken(trial: FrozenTrial) -> bool:
    return any(value > 0 for value in trial.constraints.values())


def _is_unchanged(trial: FrozenTrial) -> bool:
    return bool(trial.user_attrs.get(UNCHANGED, False))


def _log_ms(trial: FrozenTrial) -> float:
    value = trial.value if trial.state is TrialState.COMPLETE else None
    is_known = trial.user_attrs.get(MEASURED, True) or _is_unchanged(trial)
    if value is None or not is_known:
        return math.nan
    return math.log(value) if math.isfinite(value) and value > 0 else math.nan
