"""What a tuning cache says about each route, route by route: its knobs, its baseline, its best.

A cache names no GPU, no driver and no model by content, and pairs no measurement with one of the
default. So it never becomes a study of ours: it becomes recorded trials, for the replay backend
and as a hint for what to try first.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from smart_tuner.errors import UserInputError
from smart_tuner.knobs.check import check_knobs
from smart_tuner.knobs.database import KnobDatabase
from smart_tuner.knobs.knob import Knob
from smart_tuner.knobs.opt_in import opt_in_reason
from smart_tuner.knobs.read import bundled_database
from smart_tuner.knobs.tensorrt_form import SOURCE
from smart_tuner.route.build_route import BuildRoute
from smart_tuner.route.grammar import split_tokens
from smart_tuner.simulate.recorded import RecordedCompiler, RecordedTrial
from smart_tuner.storages.tuning_cache_row import CacheHeader
from smart_tuner.trial.trial import TrialOutcome

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from smart_tuner.storages.tuning_cache import TuningCache
    from smart_tuner.storages.tuning_cache_row import CacheRow


@dataclass(frozen=True, slots=True)
class CachedTrial:
    """One route of a cache, over all rows that name it.

    Attributes:
        number: Position of the route among the distinct ones, from 0.
        row: The row that speaks for it: the worst outcome, else the first.
        route: What differs from the baseline's knobs.
        latency_ms: Median of the recorded means; None if there is none.
        spread: Largest over smallest recorded mean, minus 1; 0 with one row.
        rows: How many rows name it.
    """

    number: int
    row: CacheRow
    route: BuildRoute
    latency_ms: float | None
    spread: float
    rows: int

    @property
    def outcome(self) -> TrialOutcome:
        """How it ended."""
        return self.row.outcome

    @property
    def as_written(self) -> str:
        """The route as the cache writes it."""
        return " ".join(f"-{name}={value}" for name, value in self.row.settings)


@dataclass(frozen=True, slots=True)
class CachedTrials:
    """A cache, route by route.

    Attributes:
        cache: Where it comes from.
        database: The knobs of the sweep; their defaults are the baseline's values.
        trials: One for each distinct route.
        defaults: The compiler's own default by knob, as far as it is known.
    """

    cache: TuningCache
    database: KnobDatabase
    trials: tuple[CachedTrial, ...]
    defaults: Mapping[str, str]

    @property
    def baseline(self) -> CachedTrial | None:
        """The trial of the default route; None if the sweep never tried it."""
        return next((trial for trial in self.trials if not trial.route.settings), None)

    @property
    def fastest(self) -> CachedTrial | None:
        """The fastest feasible trial, the earliest of equals; None if nothing worked."""
        timed = [
            (trial.latency_ms, trial.number, trial)
            for trial in self.trials
            if trial.outcome is TrialOutcome.FEASIBLE and trial.latency_ms
        ]
        return min(timed)[2] if timed else None

    def changed(self, trial: CachedTrial) -> str:
        """Canonical text of what differs from the compiler's own defaults in a trial's route."""
        settings = (item for item in trial.row.settings if self.defaults.get(item[0]) != item[1])
        return str(BuildRoute(tuple(sorted(settings))))

    @property
    def apparent_gain(self) -> float | None:
        """Baseline over fastest, two noisy means; None without either."""
        baseline, fastest = self.baseline, self.fastest
        if not (baseline and baseline.latency_ms and fastest and fastest.latency_ms):
            return None
        return baseline.latency_ms / fastest.latency_ms


def cached_trials(cache: TuningCache) -> CachedTrials:
    """Gather the rows of a cache by route.

    Raises:
        UserInputError: The knobs break a rule of ``check_knobs``.
    """
    header = cache.header or CacheHeader()
    shipped = {knob.name: knob.default for knob in bundled_database()}
    compiler = {**shipped, **header.defaults}
    knobs = tuple(_knobs(cache, compiler, _listed(header.expression)))
    check_knobs((f"knob {knob.name} of the cache", knob) for knob in knobs)
    database = KnobDatabase(knobs, header.tuner_version)
    defaults = {knob.name: knob.default for knob in database}
    by_route: dict[BuildRoute, list[CacheRow]] = {}
    for row in cache.rows:
        by_route.setdefault(BuildRoute.of(dict(row.settings), defaults), []).append(row)
    trials = tuple(
        _trial(number, route, rows) for number, (route, rows) in enumerate(by_route.items())
    )
    return CachedTrials(cache, database, trials, compiler)


def recorded_compiler(found: CachedTrials) -> RecordedCompiler:
    """The pretended compiler that the replay backend answers from.

    Raises:
        UserInputError: The sweep never tried its baseline, so no gain could be replayed.
    """
    if found.baseline is None:
        msg = (
            f"{found.cache.path.name} holds no run of the default route, which a replay compares "
            "with (trtexec's full search tries it only if the expression lists every default): "
            "write the trials with --out instead."
        )
        raise UserInputError(msg)
    header = found.cache.header or CacheHeader()
    return RecordedCompiler(
        knobs=found.database.knobs,
        trials=tuple(_recorded(trial, header) for trial in found.trials),
        origin=f"{header.origin} tuning cache {found.cache.path.name[:200]}, "
        f"tuner {header.tuner_version[:100]}: one mean over one run of each route",
    )


def _recorded(trial: CachedTrial, header: CacheHeader) -> RecordedTrial:
    """One trial as the replay backend takes it.

    trtexec reports the loss of its last reference pair only. When an earlier one failed, the true
    loss is not known, and the record says that the route is wrong without saying by how much.
    """
    loss = trial.row.loss
    is_wrong = trial.outcome is TrialOutcome.INFEASIBLE
    known = loss is not None and math.isfinite(loss) and trial.latency_ms is not None
    if is_wrong and not (known and header.fails(loss or 0.0)):
        loss = None
    measured = trial.outcome in (TrialOutcome.FEASIBLE, TrialOutcome.INFEASIBLE)
    return RecordedTrial(
        values=trial.route.values,
        outcome=trial.outcome.value,
        latency_ms=trial.latency_ms if measured else None,
        loss=loss if measured and loss is not None and math.isfinite(loss) else None,
    )


def _trial(number: int, route: BuildRoute, rows: list[CacheRow]) -> CachedTrial:
    failed = [row for row in rows if row.outcome is not TrialOutcome.FEASIBLE]
    times = [row.gpu_ms for row in rows if row.gpu_ms is not None]
    return CachedTrial(
        number=number,
        row=(failed or rows)[0],
        route=route,
        latency_ms=statistics.median(times) if times else None,
        spread=max(times) / min(times) - 1 if times else 0.0,
        rows=len(rows),
    )


def _knobs(
    cache: TuningCache, compiler: Mapping[str, str], listed: Mapping[str, _Listed]
) -> Iterator[Knob]:
    """The knobs of the sweep, in the order of the expression, or of their first row.

    A fixed knob is part of the baseline, whatever the compiler's own default.
    """
    seen: dict[str, dict[str, None]] = {name: {} for name in listed}
    for row in cache.rows:
        for name, value in row.settings:
            seen.setdefault(name, {})[value] = None
    for name, tried in seen.items():
        item = listed.get(name, _Listed((), is_variable=True))
        values = tuple(dict.fromkeys((*item.values, *tried)))
        default = values[0]
        if item.is_variable:
            default = compiler.get(name, default)
        yield Knob(name, values, default, source=SOURCE, opt_in=opt_in_reason(name, ""))


@dataclass(frozen=True, slots=True)
class _Listed:
    """What an expression says of one knob."""

    values: tuple[str, ...]
    is_variable: bool


def _listed(expression: str) -> dict[str, _Listed]:
    """What an expression lists by knob name; what is no token of one is left out."""
    try:
        tokens = [token.text for token in split_tokens(expression, "expression")]
    except UserInputError:
        return {}
    found: dict[str, _Listed] = {}
    for token in tokens:
        name, _, value = token.partition("=")
        inner = value.removeprefix("[").removesuffix("]")
        items = tuple(item.strip() for item in inner.split("|") if item.strip())
        if items and name.startswith("-"):
            found[name.removeprefix("-")] = _Listed(items, is_variable=value.startswith("["))
    return found
