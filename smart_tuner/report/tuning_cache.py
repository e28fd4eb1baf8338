"""What a tuning cache says, for people and for programs; and its trials in our own forms."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from smart_tuner.report.jsonl import trial_row
from smart_tuner.report.words import counted, shortened
from smart_tuner.storages.history import TrialRecord
from smart_tuner.storages.tuning_cache import counted_kinds
from smart_tuner.storages.tuning_cache_row import CacheHeader

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from smart_tuner.storages.cached_trials import CachedTrials

ROUTE_ROOM = 300
VIOLATION_LIMIT = 6.0


@dataclass(frozen=True, slots=True)
class CacheSummary:
    """A tuning cache at a glance.

    Attributes:
        file: The cache.
        origin: ``trtexec`` or ``Torch-TensorRT``.
        tuner_version: Version of its knob database.
        search: ``fast``, ``full``, ``mixed``; empty if the header does not say.
        model: The ONNX file, as the header has it.
        rows: Usable rows.
        dropped: How many lines were left out, by reason.
        undecodable: Lines with bytes that are no UTF-8.
        has_header: Whether there was a header.
        trials: Distinct routes by outcome.
        repeated: Routes with more than one row.
        spread: Largest over smallest time of one route, minus 1, at its worst; a lower bound of
            the noise. None without repeats.
        metric: Our name of the accuracy metric; empty if accuracy was not checked.
        epsilon: The epsilon that accepts the same losses here; None if accuracy was not checked.
        baseline_route: The baseline as the cache writes it; None if it was never tried.
        baseline_ms: Its time.
        fastest_route: What differs from the compiler's defaults in the fastest feasible route.
        fastest_ms: Its time.
        apparent_gain: Baseline over fastest: one noisy mean each, no proof.
    """

    file: str
    origin: str
    tuner_version: str
    search: str
    model: str
    rows: int
    dropped: Mapping[str, int]
    undecodable: int
    has_header: bool
    trials: Mapping[str, int]
    repeated: int
    spread: float | None
    metric: str
    epsilon: float | None
    baseline_route: str | None
    baseline_ms: float | None
    fastest_route: str | None
    fastest_ms: float | None
    apparent_gain: float | None


def cache_summary(found: CachedTrials) -> CacheSummary:
    """Summarise a cache."""
    cache, baseline, fastest = found.cache, found.baseline, found.fastest
    header = cache.header or CacheHeader()
    repeated = [trial for trial in found.trials if trial.rows > 1]
    is_checked = any(row.losses for row in cache.rows) and header.epsilon > 0
    return CacheSummary(
        file=str(cache.path),
        origin=header.origin,
        tuner_version=header.tuner_version,
        search=header.search,
        model=header.model,
        rows=len(cache.rows),
        dropped=cache.dropped,
        undecodable=cache.undecodable,
        has_header=cache.header is not None,
        trials=dict(Counter(trial.outcome.value for trial in found.trials)),
        repeated=len(repeated),
        spread=max(trial.spread for trial in repeated) if repeated else None,
        metric=header.metric if is_checked else "",
        epsilon=header.our_epsilon if is_checked else None,
        baseline_route=baseline.as_written if baseline else None,
        baseline_ms=baseline.latency_ms if baseline else None,
        fastest_route=found.changed(fastest) if fastest else None,
        fastest_ms=fastest.latency_ms if fastest else None,
        apparent_gain=found.apparent_gain,
    )


def summary_lines(summary: CacheSummary) -> Iterator[str]:
    """The summary for people."""
    search = f", {summary.search} search" if summary.search else ""
    yield (f"{summary.file}: {summary.origin} tuning cache, tuner {summary.tuner_version}{search}")
    routes = sum(summary.trials.values())
    yield f"  kept: {summary.rows} rows on {routes} routes ({counted(summary.trials) or 'none'})"
    if summary.dropped:
        yield f"  dropped: {counted_kinds(summary.dropped)}"
    if summary.undecodable:
        yield f"  {summary.undecodable} lines hold bytes that are no UTF-8"
    if not summary.has_header:
        yield "  no header: defaults are those of tuner 2.19.45, or else the first row's"
    if summary.epsilon is not None:
        yield f"  accuracy: {summary.metric or 'unknown metric'} within {summary.epsilon:g}"
    yield from _times(summary)


def _times(summary: CacheSummary) -> Iterator[str]:
    if summary.baseline_ms is None:
        yield "  baseline: not there (never tried, or it failed), so no gain can be told"
    else:
        route = shortened(summary.baseline_route or "(default)", ROUTE_ROOM)
        yield f"  baseline: {summary.baseline_ms:.4g} ms  {route}"
    if summary.fastest_ms is None:
        yield "  fastest: none, no route worked"
        return
    gain = "" if summary.apparent_gain is None else f", {summary.apparent_gain:.3f}x"
    route = shortened(summary.fastest_route or "(default)", ROUTE_ROOM)
    yield f"  fastest: {summary.fastest_ms:.4g} ms{gain}  {route}"
    if summary.spread is not None:
        yield (
            f"  noise: times of one route differ by up to {100 * summary.spread:.2g} % "
            f"(routes with several rows: {summary.repeated})"
        )
    yield (
        "  not proven: each time is one mean over one run of one build, warm-up included, and "
        "the fastest of many is partly luck"
    )
    if summary.fastest_route and summary.apparent_gain != 1:
        model = summary.model or "MODEL"
        words = ["smart-tuner", "apply", model, "--backend", "tensorrt"]
        yield f"  to measure it: {shlex.join([*words, f'--route={summary.fastest_route}'])}"


def trial_lines(found: CachedTrials) -> Iterator[str]:
    """The trials as lines of ``trials.jsonl``, one a route."""
    baseline_ms = found.baseline.latency_ms if found.baseline else None
    header = found.cache.header or CacheHeader()
    for trial in found.trials:
        rows = f", median of {trial.rows} rows" if trial.rows > 1 else ""
        record = TrialRecord(
            number=trial.number,
            route=trial.route,
            outcome=trial.outcome,
            value_ms=trial.latency_ms,
            violation=_violation(trial.row.loss, header.our_epsilon),
            message=trial.row.message,
            reason=f"{header.origin} tuning cache, phase {trial.row.phase}, "
            f"iter {trial.row.number}{rows}",
        )
        yield trial_row(record, baseline_ms)


def _violation(loss: float | None, epsilon: float) -> float | None:
    """How far a loss is over epsilon, as trials are told: log10(loss / epsilon) within +-6."""
    if loss is None or not epsilon:
        return None
    if not math.isfinite(loss):
        return VIOLATION_LIMIT
    ratio = math.log10(loss / epsilon) if loss > 0 else -VIOLATION_LIMIT
    return max(-VIOLATION_LIMIT, min(VIOLATION_LIMIT, ratio))
