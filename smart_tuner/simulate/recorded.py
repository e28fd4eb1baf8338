"""A compiler that knows only the trials that were recorded on a real one."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from smart_tuner.errors import BuildError, UserInputError
from smart_tuner.route.build_route import BuildRoute
from smart_tuner.simulate.effects import Failure, Noise, Observation
from smart_tuner.simulate.landscape import Landscape
from smart_tuner.simulate.optimum import Optimum
from smart_tuner.simulate.sampling import build_factor, draw_samples

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    import numpy.typing as npt

    from smart_tuner.knobs.knob import Knob

_FAILURES = {
    "build_failed": Failure.BUILD_ERROR,
    "run_failed": Failure.RUN_ERROR,
    "timed_out": Failure.HANG,
    "not_applied": Failure.NOT_APPLIED,
}
_MEASURED = ("feasible", "infeasible")


@dataclass(frozen=True, slots=True)
class RecordedTrial:
    """What a real compiler made of one route.

    Attributes:
        values: The knobs that differ from their default.
        outcome: As ``TrialOutcome`` spells it.
        latency_ms: Measured latency; needed of a feasible trial, and of an infeasible one that
            has a loss.
        loss: Accuracy loss; ``None`` of an infeasible trial stands for NaN outputs.
        build_seconds: What the attempt cost.
    """

    values: Mapping[str, str]
    outcome: str
    latency_ms: float | None = None
    loss: float | None = None
    build_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class RecordedCompiler:
    """Recorded trials, answering like a simulated compiler; a route not recorded does not build.

    Every ``values`` argument maps knob names to values; knobs left out have their default. A
    knob or value that is not listed raises ``UserInputError``, a legal route that was not
    recorded ``BuildError``.

    Attributes:
        knobs: The knobs of the real compiler that the records speak about.
        trials: At most one a route, the default route among them.
        noise: What replaying adds to the recorded latencies; little, they are noisy already.
        timeout_seconds: What a recorded time-out costs in replay.
        origin: Where the records come from; shown to people.
    """

    knobs: tuple[Knob, ...]
    trials: tuple[RecordedTrial, ...]
    noise: Noise = field(default_factory=lambda: Noise(build=0.0, spike_rate=0.0))
    timeout_seconds: float = 60.0
    origin: str = ""
    jitter: float = field(default=0.0, init=False)
    _landscape: Landscape = field(init=False, repr=False, compare=False)
    _by_route: dict[BuildRoute, RecordedTrial] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        landscape = Landscape(self.knobs, (), (), ())
        object.__setattr__(self, "_landscape", landscape)
        by_route: dict[BuildRoute, RecordedTrial] = {}
        for trial in self.trials:
            _check(trial)
            route = self._route(trial.values)
            if route in by_route:
                msg = f"The route {str(route) or '(default)'!r} is recorded twice; keep one."
                raise UserInputError(msg)
            by_route[route] = trial
        if BuildRoute() not in by_route:
            msg = "The recorded trials lack the default route; add one with empty values."
            raise UserInputError(msg)
        object.__setattr__(self, "_by_route", by_route)

    def trial(self, values: Mapping[str, str]) -> RecordedTrial:
        """Return the record of a route.

        Raises:
            BuildError: The route was not recorded.
        """
        route = self._route(values)
        if route not in self._by_route:
            msg = (
                f"No recorded trial of the route {str(route)!r}; {len(self.trials)} are recorded."
            )
            raise BuildError(msg)
        return self._by_route[route]

    def failure(self, values: Mapping[str, str]) -> Failure | None:
        """Return how the route broke; ``None`` when it was measured with finite outputs."""
        trial = self.trial(values)
        if trial.outcome == "infeasible" and trial.loss is None:
            return Failure.NAN
        return _FAILURES.get(trial.outcome)

    def latency_ms(self, values: Mapping[str, str]) -> float:
        """Return the recorded latency.

        Raises:
            BuildError: None was recorded.
        """
        latency = self.trial(values).latency_ms
        if latency is None:
            msg = f"No latency was recorded for the route {str(self._route(values))!r}."
            raise BuildError(msg)
        return latency

    def loss(self, values: Mapping[str, str]) -> float:
        """Return the recorded accuracy loss; infinite for NaN outputs, 0 when none was kept."""
        trial = self.trial(values)
        if trial.loss is None:
            return math.inf if trial.outcome == "infeasible" else 0.0
        return trial.loss

    def route_build_seconds(self, values: Mapping[str, str]) -> float:
        """Return what the recorded attempt cost."""
        return self.trial(values).build_seconds

    def settings_in_effect(self, values: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
        """Return the settings that are not default, sorted."""
        return self._route(values).settings

    def sample(
        self,
        values: Mapping[str, str],
        build_seed: int,
        count: int,
        rng: np.random.Generator,
        *,
        elapsed_seconds: float = 0.0,
    ) -> npt.NDArray[np.float64]:
        """Draw ``count`` latencies (ms, float64) around the recorded one."""
        luck = build_factor(self.noise, repr((build_seed, self.settings_in_effect(values))))
        return draw_samples(
            self.noise, self.latency_ms(values) * luck, count, rng, elapsed_seconds
        )

    def observe(
        self, values: Mapping[str, str], rng: np.random.Generator, *, elapsed_seconds: float = 0.0
    ) -> Observation:
        """Try one recorded route, in process."""
        trial = self.trial(values)
        latency = None
        if trial.outcome in _MEASURED and trial.latency_ms is not None:
            latency = float(self.sample(values, 0, 1, rng, elapsed_seconds=elapsed_seconds)[0])
        loss = self.loss(values) if trial.outcome in _MEASURED else None
        return Observation(trial.outcome, latency, loss, trial.build_seconds)

    @property
    def base_latency_ms(self) -> float:
        """Recorded latency of the default route."""
        return self.latency_ms({})

    @property
    def build_seconds(self) -> float:
        """What the default route's attempt cost; 1 if the record does not say."""
        return self.trial({}).build_seconds or 1.0

    @property
    def epsilon(self) -> float:
        """The largest loss that was feasible."""
        losses = (trial.loss or 0.0 for trial in self.trials if trial.outcome == "feasible")
        return max(losses, default=0.0)

    def optimum(self) -> Optimum:
        """Return the fastest feasible record, the earliest of equals."""
        feasible = (trial for trial in self.trials if trial.outcome == "feasible")
        best = min(feasible, key=lambda trial: trial.latency_ms or math.inf)
        latency_ms = best.latency_ms or math.inf
        log_latency = math.log(latency_ms / self.base_latency_ms)
        return Optimum(self._route(best.values).values, min(0.0, log_latency), is_exact=True)

    def attainable_gain(self) -> float:
        """Return default over fastest recorded latency."""
        return math.exp(-self.optimum().log_latency)

    def digest(self) -> str:
        """Return a digest that changes with anything that a result could depend on."""
        return hashlib.sha256(repr(self).encode("utf-8", "surrogatepass")).hexdigest()

    def _route(self, values: Mapping[str, str]) -> BuildRoute:
        self._landscape.active(values)  # refuses what is not listed
        return BuildRoute.of(values, self._landscape.defaults)


def _check(trial: RecordedTrial) -> None:
    if trial.outcome not in (*_FAILURES, *_MEASURED):
        legal = ", ".join((*_MEASURED, *_FAILURES))
        msg = f"Unknown outcome {trial.outcome!r} in the recorded trials; it is one of {legal}."
        raise UserInputError(msg)
    is_nan = trial.outcome == "infeasible" and trial.loss is None
    has_latency = trial.latency_ms is not None and trial.latency_ms > 0
    if trial.outcome in _MEASURED and not (has_latency or is_nan):
        msg = f"A recorded trial is {trial.outcome} and has no latency above 0 ms."
        raise UserInputError(msg)
