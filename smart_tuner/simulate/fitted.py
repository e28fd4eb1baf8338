"""A simulated compiler whose effects were estimated from a recorded study.

A study tries some hundred of astronomically many routes, so a sampler that replays it would mostly
ask for routes that nobody measured. What is done instead: effects of single values are estimated
from the recorded trials, and a simulated compiler is made of them. It is a simulation, and it says
less than a real study:

* It is additive: interactions between values count as build noise.
* A value needs |t| > 3 to get an effect at all; smaller effects are lost, found ones are likely a
  little too large.
* Only values that the study tried can do anything.

Its noise is the study's own: what the fit does not explain, and the half widths as recorded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from smart_tuner.errors import UserInputError
from smart_tuner.simulate.compiler import SimulatedCompiler
from smart_tuner.simulate.effects import Failure, Noise, ValueEffect

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from smart_tuner.knobs.knob import Knob
    from smart_tuner.route.build_route import BuildRoute

    Setting = tuple[str, str]
    Figures = npt.NDArray[np.float64]

SIGNIFICANT = 3.0
"""Student's t of an estimate below which a value is taken to do nothing."""

EPSILON = 1e-3
NORMAL_QUANTILE = 1.96
NORMAL_MAD = 1.4826
LEAST_SPREAD = 1e-4

_FAILURES = {
    "build_failed": Failure.BUILD_ERROR,
    "run_failed": Failure.RUN_ERROR,
    "timed_out": Failure.HANG,
    "not_applied": Failure.NOT_APPLIED,
    "infeasible": None,
}


@dataclass(frozen=True, slots=True)
class StudiedTrial:
    """One trial of a recorded study.

    Attributes:
        route: What was tried.
        outcome: As ``TrialOutcome`` spells it.
        latency_ms: Told latency, if it was measured.
        half_width: Half of the 95 % interval on the log ratio, if known.
        unchanged: The engine was the baseline's.
        seconds: What the trial took.
    """

    route: BuildRoute
    outcome: str
    latency_ms: float | None
    half_width: float | None
    unchanged: bool
    seconds: float


def fit_compiler(
    knobs: tuple[Knob, ...], trials: Sequence[StudiedTrial], origin: str
) -> SimulatedCompiler:
    """Estimate effects by forward selection, and blame failures on single values.

    Args:
        knobs: The knobs that the study searched.
        trials: Its trials, the default route among them.
        origin: Where they come from, for people.

    Raises:
        UserInputError: The default route was not measured.
    """
    baseline = next((t.latency_ms for t in trials if not t.route and t.latency_ms), None)
    if baseline is None:
        msg = f"{origin}: the default route has no latency, so no ratio can be formed."
        raise UserInputError(msg)
    idle = {item for trial in trials if trial.unchanged for item in trial.route.settings}
    broken = _culprits(trials, idle)
    measured = [
        trial
        for trial in trials
        if trial.latency_ms and trial.route and not trial.unchanged
        if broken.keys().isdisjoint(trial.route.settings)
    ]
    effects, spread = _fit(measured, baseline, idle)
    widths = [trial.half_width for trial in measured if trial.half_width]
    noise = Noise(
        build=max(LEAST_SPREAD, spread),
        measurement=float(np.median(widths)) / NORMAL_QUANTILE if widths else 0.0,
        spike_rate=0.0,
    )
    return SimulatedCompiler(
        knobs=knobs,
        base_latency_ms=baseline,
        epsilon=EPSILON,
        effects=tuple(_effects(effects, idle, broken)),
        noise=noise,
        build_seconds=float(np.median([trial.seconds for trial in trials])),
        origin=origin,
    )


def _effects(
    logs: dict[Setting, float], idle: set[Setting], broken: dict[Setting, Failure | None]
) -> list[ValueEffect]:
    found = [ValueEffect(*item, noop=True) for item in sorted(idle)]
    for item in sorted({*logs, *broken} - idle):
        failure = broken.get(item)
        loss = 2 * EPSILON if item in broken and failure is None else 0.0
        log_latency = logs.get(item, 0.0)
        found.append(ValueEffect(*item, log_latency=log_latency, loss=loss, failure=failure))
    return found


def _culprits(trials: Sequence[StudiedTrial], idle: set[Setting]) -> dict[Setting, Failure | None]:
    """Blame each failure on the value that most failures share and no good route had.

    Failures whose values all worked elsewhere are left out: a combination, or bad luck.
    """
    good = {item for t in trials if t.outcome == "feasible" for item in t.route.settings} | idle
    left = [trial for trial in trials if trial.outcome in _FAILURES]
    found: dict[Setting, Failure | None] = {}
    while True:
        counts: dict[Setting, int] = {}
        for trial in left:
            for item in trial.route.settings:
                if item not in good:
                    counts[item] = counts.get(item, 0) + 1
        if not counts:
            return found
        worst = max(sorted(counts), key=counts.__getitem__)
        found[worst] = next(_FAILURES[t.outcome] for t in left if worst in t.route.settings)
        left = [trial for trial in left if worst not in trial.route.settings]


def _fit(
    trials: Sequence[StudiedTrial], baseline: float, idle: set[Setting]
) -> tuple[dict[Setting, float], float]:
    """Forward selection by t; returns effects and the spread of what is left."""
    names = sorted({item for t in trials for item in t.route.settings} - idle)
    if not names or len(trials) < 3:
        return {}, 0.0
    table = np.array([[float(item in t.route.settings) for item in names] for t in trials])
    target = np.array([math.log((t.latency_ms or baseline) / baseline) for t in trials])
    chosen: list[int] = []
    while len(chosen) < len(trials) // 3:
        scores = _partial_t(table, target, chosen)
        best = int(scores.argmax())
        if scores[best] < SIGNIFICANT:
            break
        chosen.append(best)
    estimates = np.linalg.lstsq(table[:, chosen], target, rcond=None)[0]
    residual = target - table[:, chosen] @ estimates
    found = {names[column]: float(e) for column, e in zip(chosen, estimates, strict=True)}
    return found, NORMAL_MAD * float(np.median(np.abs(residual)))


def _partial_t(table: Figures, target: Figures, chosen: list[int]) -> Figures:
    """|t| of each column, were it added to those that are chosen."""
    basis = np.linalg.qr(table[:, chosen])[0]
    rest = table - basis @ (basis.T @ table)
    residual = target - basis @ (basis.T @ target)
    size = (rest**2).sum(axis=0)
    explained = np.where(size > 1e-9, (rest.T @ residual) ** 2 / np.maximum(size, 1e-9), 0.0)
    left = np.maximum((residual**2).sum() - explained, 1e-12)
    return np.asarray(np.sqrt(explained / left * (len(target) - len(chosen) - 1)))
