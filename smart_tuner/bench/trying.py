"""Trials on a pretend compiler, as the evaluator would report them."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from smart_tuner.engine.build import BuildRequest, Engine
from smart_tuner.errors import BuildError
from smart_tuner.measure.latency import Comparison, LatencySummary
from smart_tuner.simulate.effects import Observation
from smart_tuner.trial.trial import Trial, TrialOutcome
from smart_tuner.validate.losses import OutputLoss

if TYPE_CHECKING:
    from smart_tuner.bench.recorded import Compiler
    from smart_tuner.bench.workloads import Workload
    from smart_tuner.measure.stop_rule import StopRule
    from smart_tuner.route.build_route import BuildRoute

POINT = "all"
WEIGHTS = {POINT: 1.0}
"""A pretend workload has one point."""

NORMAL_QUANTILE = 1.96
SEARCH, FRESH = "search", "fresh"

_NO_ENGINE = (TrialOutcome.BUILD_FAILED, TrialOutcome.TIMED_OUT)
_NOWHERE = Path("nowhere")


@dataclass(slots=True)
class PretendEvaluator:
    """Tries routes of one workload, in process.

    Common random numbers: what a route shows depends on workload, route and how often the route
    was tried before, and on nothing that a sampler does besides. So two samplers that try one
    route see the same figure, whenever they do; only drift depends on the moment.

    The search compares every candidate with one baseline engine, as a study does, and that engine
    had luck of its own: it moves all gains of a workload alike. Finalists meet fresh baselines.

    Attributes:
        workload: What is tried.
        compiler: Its compiler.
        seconds: Simulated seconds that trials cost so far.
        tries: How often each route was tried, by phase and route.
    """

    workload: Workload
    compiler: Compiler
    seconds: float = 0.0
    tries: dict[tuple[str, BuildRoute], int] = field(default_factory=dict)

    @property
    def baseline_ms(self) -> float:
        """Latency of the study's baseline engine, its luck included."""
        return self.compiler.base_latency_ms * math.exp(self._baseline_luck)

    @property
    def _baseline_luck(self) -> float:
        stream = self._stream("baseline", "", 0)
        return self.compiler.noise.build * float(stream.standard_normal())

    def log_latency(self, route: BuildRoute) -> float:
        """The truth: ln(latency / latency of the default route)."""
        latency_ms = self.compiler.latency_ms(route.values)
        return math.log(latency_ms / self.compiler.base_latency_ms)

    def attempt(self, route: BuildRoute) -> Trial:
        """Try a route in the search; adds to ``seconds``."""
        trial, seconds = self._try(SEARCH, route, self._baseline_luck)
        self.seconds += seconds
        return trial

    def evaluate(
        self,
        route: BuildRoute,
        folder: Path,
        rule: StopRule,
        *,
        fresh_baseline: bool = False,
    ) -> Trial:
        """Build a route and the baseline anew and compare them; costs the search nothing."""
        del folder, rule, fresh_baseline
        luck = self._stream("fresh baseline", str(route), self.tries.get((FRESH, route), 0))
        noise = self.compiler.noise
        baseline = math.hypot(noise.build, noise.measurement) * float(luck.standard_normal())
        return self._try(FRESH, route, baseline)[0]

    def _try(self, phase: str, route: BuildRoute, baseline: float) -> tuple[Trial, float]:
        """Observe a route against a baseline with this deviation from its true log latency."""
        count = self.tries.get((phase, route), 0)
        self.tries[phase, route] = count + 1
        observation = self._observe(route, self._stream(phase, str(route), count))
        trial = self._trial(route, observation, f"{phase} {count}", baseline)
        return trial, observation.build_seconds

    def _observe(self, route: BuildRoute, stream: np.random.Generator) -> Observation:
        try:
            return self.compiler.observe(route.values, stream, elapsed_seconds=self.seconds)
        except BuildError:  # not recorded: as the replay backend has it, it does not build
            return Observation(TrialOutcome.BUILD_FAILED.value, None, None, 0.0)

    def _stream(self, phase: str, route: str, count: int) -> np.random.Generator:
        text = repr((self.workload.name, phase, route, count)).encode("utf-8", "surrogatepass")
        return np.random.default_rng(int.from_bytes(hashlib.sha256(text).digest(), "little"))

    def _trial(
        self, route: BuildRoute, observation: Observation, build: str, baseline: float
    ) -> Trial:
        outcome = TrialOutcome(observation.outcome)
        return Trial(
            route=route,
            outcome=outcome,
            engine=None if outcome in _NO_ENGINE else self._engine(route, build),
            losses=() if observation.loss is None else (self._loss(observation.loss),),
            comparisons=self._comparisons(observation, baseline),
            unchanged=observation.unchanged,
            seconds={"build": observation.build_seconds, "total": observation.build_seconds},
        )

    def _engine(self, route: BuildRoute, build: str) -> Engine:
        in_effect = repr(self.compiler.settings_in_effect(route.values))
        fingerprint = _digest(in_effect)
        return Engine(
            path=_NOWHERE,
            sha256=_digest(repr((in_effect, str(route), build))),
            fingerprint=fingerprint,
            request=BuildRequest(_NOWHERE, route),
            build_seconds=0.0,
        )

    def _loss(self, loss: float) -> OutputLoss:
        return OutputLoss(POINT, "0", "y", "linf", loss, self.compiler.epsilon)

    def _comparisons(self, observation: Observation, baseline: float) -> tuple[Comparison, ...]:
        if observation.latency_ms is None or observation.unchanged:
            return ()
        log_ratio = math.log(observation.latency_ms / self.compiler.base_latency_ms) - baseline
        half_width = NORMAL_QUANTILE * self.compiler.noise.measurement
        summary = _summary(observation.latency_ms)
        base = _summary(self.compiler.base_latency_ms)
        return (Comparison(POINT, (log_ratio,), log_ratio, half_width, base, summary, 0.0),)


def _summary(latency_ms: float) -> LatencySummary:
    return LatencySummary(1, *(8 * (latency_ms,)))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
