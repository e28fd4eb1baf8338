"""Finalists: rebuilt, measured again, and cut down to the knobs that pay."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from smart_tuner.route.build_route import BuildRoute
from smart_tuner.trial.trial import TrialOutcome

if TYPE_CHECKING:
    from collections.abc import Iterable

    from smart_tuner.storages.history import TrialRecord
    from smart_tuner.study.proof.fresh import Fresh, FreshBuilder

SHORTLIST = 3
"""How many routes are built again. The best of many noisy figures is too good to be true; among
three the true best is nearly always found."""

REPORT_ROUNDS = 5
"""Fresh builds a side behind a route gain; fewer are called indicative."""

LEAST_REPORT_ROUNDS = 2
"""Fewer would give no interval."""

TOLERANCE = 0.0025
"""A knob that pays less than a quarter of a percent is reset: the shorter route ships."""

SPREAD = 0.03
"""Standard deviation of the log gains of routes that do something."""

NORMAL_QUANTILE = 1.96

REGRET = 0.01
"""If the reset lost more than one percent after all, the longer route ships."""


def shortlist(
    records: Iterable[TrialRecord], baseline_ms: float, min_gain: float
) -> tuple[BuildRoute, ...]:
    """Routes worth building again, the best first.

    Ranked by what is left of each gain once its noise is taken off: an estimate with standard
    error s shrinks by t^2 / (t^2 + s^2), t being the spread of true gains (James and Stein, Fourth
    Berkeley Symposium 1, 1961), since the fastest of many noisy figures is mostly the luckiest.
    Only routes that seemed faster and may reach the smallest gain; the shortest of each engine.

    Args:
        records: Finished trials.
        baseline_ms: The study's frozen baseline latency.
        min_gain: The smallest gain that ships.
    """
    ranked = []
    for record in records:
        if record.outcome is not TrialOutcome.FEASIBLE or record.value_ms is None:
            continue
        half_width = record.half_width or 0.0
        log_gain = math.log(baseline_ms / record.value_ms)
        seems_faster = len(record.route) > 0 and not record.unchanged and log_gain > 0
        if seems_faster and log_gain + half_width >= math.log(min_gain):
            ranked.append((-_shrunken(log_gain, half_width), record))
    ranked.sort(key=lambda pair: (pair[0], pair[1].number))
    by_engine: dict[str, BuildRoute] = {}
    for _, record in ranked:
        engine = record.fingerprint or str(record.route)
        route = by_engine.setdefault(engine, record.route)
        if len(record.route) < len(route):
            by_engine[engine] = record.route
    return tuple(by_engine.values())[:SHORTLIST]


def _shrunken(log_gain: float, half_width: float) -> float:
    """The gain to expect, given an estimate and half of its 95 % interval."""
    spread, error = SPREAD**2, (half_width / NORMAL_QUANTILE) ** 2
    return log_gain * spread / (spread + error)


def best_rebuilt(routes: Iterable[BuildRoute], builder: FreshBuilder) -> Fresh | None:
    """Build each route anew and return the fastest; ``None`` if none works any more.

    Rounds that the report needs are never spent here, but the first route always gets its turn.
    """
    best: Fresh | None = None
    for route in routes:
        if best is not None and not builder.affords(REPORT_ROUNDS + 1):
            break
        fresh = builder.measure(route, "finalist")
        if fresh and (best is None or fresh.log_ratio < best.log_ratio):
            best = fresh
    return best


def without_idle_knobs(best: Fresh, builder: FreshBuilder) -> Fresh:
    """Reset the knobs that do not pay, by halves.

    Half of the knobs are reset at a time, then quarters, then single ones, as delta debugging
    does (Zeller and Hildebrandt, IEEE Transactions on Software Engineering 28, 2002). A reset
    stays if the route is not slower by more than ``TOLERANCE``, and still within epsilon.

    Returns:
        The shortest route found, with its measurement; ``best`` itself if nothing could go.
    """
    current = best
    size = (len(best.route) + 1) // 2
    while size >= 1 and len(current.route) > 1:
        current, is_complete = _one_pass(current, builder, size)
        if not is_complete:
            break
        size = size // 2
    return current if _is_as_fast(current, best, REGRET) else best


def _one_pass(current: Fresh, builder: FreshBuilder, size: int) -> tuple[Fresh, bool]:
    """Try to reset each run of ``size`` knobs; the flag says whether the budget allowed it."""
    names = [name for name, _ in current.route.settings]
    for start in range(0, len(names), size):
        group = set(names[start : start + size])
        rest = tuple(item for item in current.route.settings if item[0] not in group)
        if not rest or len(rest) == len(current.route):
            continue
        if not builder.affords(REPORT_ROUNDS + 1):
            return current, False
        shorter = builder.measure(BuildRoute(rest), "reset")
        if shorter and _is_as_fast(shorter, current, TOLERANCE):
            current = shorter
    return current, True


def _is_as_fast(shorter: Fresh, longer: Fresh, tolerance: float) -> bool:
    """Whether a route lost no more than ``tolerance``, or is the same engine anyway."""
    if shorter.engine.fingerprint == longer.engine.fingerprint:
        return True
    return shorter.log_ratio - longer.log_ratio <= tolerance


def report_rounds(route: BuildRoute, builder: FreshBuilder) -> tuple[Fresh | None, ...]:
    """Build the winner and the baseline several times more; only these figures are reported.

    The number of rounds is fixed before the first one, by the time that is left.

    Returns:
        One entry a round; ``None`` where the route failed or broke epsilon.
    """
    affordable = (
        int(builder.budget.left / builder.round_seconds)
        if builder.round_seconds
        else REPORT_ROUNDS
    )
    rounds = max(LEAST_REPORT_ROUNDS, min(REPORT_ROUNDS, affordable))
    return tuple(builder.measure(route, "report") for _ in range(rounds))
