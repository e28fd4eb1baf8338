"""A compiler that exists on paper only: knobs, and what they do to latency and accuracy."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from smart_tuner.errors import UserInputError
from smart_tuner.simulate.effects import Failure, Noise, Observation
from smart_tuner.simulate.landscape import Landscape
from smart_tuner.simulate.optimum import find_optimum
from smart_tuner.simulate.sampling import build_factor, draw_samples, drift_log, factor

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    import numpy.typing as npt

    from smart_tuner.knobs.knob import Knob
    from smart_tuner.simulate.effects import Gate, PairEffect, ValueEffect
    from smart_tuner.simulate.optimum import Optimum

# Share of a build that has passed when it breaks; an assumption. A hang costs the time limit.
_SHARE_SPENT = {
    None: 1.0,
    Failure.NOT_APPLIED: 0.0,
    Failure.BUILD_ERROR: 0.5,
    Failure.ABORT: 0.5,
    Failure.SEGFAULT: 0.5,
    Failure.RUN_ERROR: 1.0,
    Failure.NAN: 1.0,
}


@dataclass(frozen=True, slots=True)
class SimulatedCompiler:
    """Knobs with sparse effects that add up on the logarithm of the latency.

    Every ``values`` argument maps knob names to values; knobs left out have their default. A
    knob or value that the compiler does not have raises ``UserInputError``.

    Attributes:
        knobs: Closed knobs, names unique; their defaults give the default route.
        base_latency_ms: True latency of the default route.
        epsilon: The largest accuracy loss that counts as feasible (metric ``l1`` or ``linf``).
        effects: At most one entry a value; values without an entry do nothing.
        pairs: Interactions.
        gates: At most one entry a child knob.
        noise: What measuring adds.
        build_seconds: Build time of the default route.
        timeout_seconds: What a hanging build costs.
        base_loss: Accuracy loss that every build has, the default route's too.
        jitter: Accuracy loss that differs from run to run: a model that is not repeatable.
        origin: How the compiler came about, e.g. ``sparse seed=3``; shown to people.
    """

    knobs: tuple[Knob, ...]
    base_latency_ms: float = 1.0
    epsilon: float = 1e-3
    effects: tuple[ValueEffect, ...] = ()
    pairs: tuple[PairEffect, ...] = ()
    gates: tuple[Gate, ...] = ()
    noise: Noise = field(default_factory=Noise)
    build_seconds: float = 10.0
    timeout_seconds: float = 60.0
    base_loss: float = 0.0
    jitter: float = 0.0
    origin: str = ""
    _landscape: Landscape = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.knobs or self.base_latency_ms <= 0:
            msg = "A simulated compiler needs at least one knob and a base latency above 0 ms."
            raise UserInputError(msg)
        noise, costs = self.noise, (self.build_seconds, self.timeout_seconds)
        scales = (self.epsilon, self.base_loss, self.jitter, noise.build, noise.measurement)
        if min(*costs, *scales, noise.spike_rate, noise.spike_size) < 0:
            msg = (
                "A simulated compiler has a negative epsilon, loss, noise or time; use 0 or more."
            )
            raise UserInputError(msg)
        if noise.drift_period_seconds <= 0:
            msg = "The drift period of a simulated compiler must be above 0 s."
            raise UserInputError(msg)
        tables = Landscape(self.knobs, self.effects, self.pairs, self.gates)
        object.__setattr__(self, "_landscape", tables)

    def latency_ms(self, values: Mapping[str, str]) -> float:
        """Return the true latency; of a route that breaks, what it would have been."""
        return self.base_latency_ms * factor(self._landscape.truth(values).log_latency)

    def loss(self, values: Mapping[str, str]) -> float:
        """Return the accuracy loss; infinite when the outputs are NaN."""
        truth = self._landscape.truth(values)
        return math.inf if truth.failure is Failure.NAN else self.base_loss + truth.loss

    def failure(self, values: Mapping[str, str]) -> Failure | None:
        """Return how the route breaks, the first failure that a compiler would meet."""
        return self._landscape.truth(values).failure

    def route_build_seconds(self, values: Mapping[str, str]) -> float:
        """Return what building costs, up to the failure if there is one."""
        truth = self._landscape.truth(values)
        return self._spent(truth.failure, truth.log_build)

    def is_noop(self, knob: str, value: str) -> bool:
        """Whether the engine stays the default's when only this value is set.

        True for defaults, for values without any effect on the engine, and for children whose
        gate the default route closes.
        """
        return not self._landscape.active({knob: value})

    def is_feasible(self, values: Mapping[str, str]) -> bool:
        """Whether the route works and its loss is at most epsilon."""
        return self.failure(values) is None and self.loss(values) <= self.epsilon

    def settings_in_effect(self, values: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
        """Return the settings that reach the engine, sorted: equal for equal engines."""
        active = self._landscape.active(values)
        return tuple(sorted((name, effect.value) for name, effect in active.items()))

    def optimum(self) -> Optimum:
        """Return the fastest feasible route; exact unless it says otherwise.

        Raises:
            UserInputError: Not even the default route is feasible.
        """
        budget = self.epsilon - self.base_loss
        if budget < 0:
            msg = (
                f"No route is feasible: base_loss {self.base_loss} exceeds epsilon {self.epsilon}."
            )
            raise UserInputError(msg)
        # The sum base_loss + losses may round up: stay a last bit below.
        return find_optimum(self._landscape, budget * (1 - 1e-12) if self.base_loss else budget)

    def attainable_gain(self) -> float:
        """Return default over optimal true latency; 1.0 when nothing beats the default."""
        return factor(-self.optimum().log_latency)

    def sample(
        self,
        values: Mapping[str, str],
        build_seed: int,
        count: int,
        rng: np.random.Generator,
        *,
        elapsed_seconds: float = 0.0,
    ) -> npt.NDArray[np.float64]:
        """Measure one engine.

        Args:
            values: The route.
            build_seed: Which of the route's possible engines: one seed, one engine.
            count: How many samples.
            rng: Source of the measurement noise.
            elapsed_seconds: When the first sample starts, for the drift.

        Returns:
            ``count`` latencies in milliseconds, float64.
        """
        luck = build_factor(self.noise, repr((build_seed, self.settings_in_effect(values))))
        return draw_samples(
            self.noise, self.latency_ms(values) * luck, count, rng, elapsed_seconds
        )

    def observe(
        self, values: Mapping[str, str], rng: np.random.Generator, *, elapsed_seconds: float = 0.0
    ) -> Observation:
        """Try one route, in process: a fresh build and one noisy measurement.

        Each call takes the same number of draws from ``rng``, whatever the outcome, so that
        samplers can be compared on common random numbers.
        """
        build, measurement = rng.standard_normal(2).tolist()
        spiked = rng.random() < self.noise.spike_rate
        spike = rng.exponential(self.noise.spike_size)
        truth = self._landscape.truth(values)
        failure = truth.failure
        seconds = self._spent(failure, truth.log_build)
        if failure is not None:
            loss = math.inf if failure is Failure.NAN else None
            return Observation(failure.outcome, None, loss, seconds)
        loss = self.base_loss + truth.loss
        outcome = "feasible" if loss <= self.epsilon else "infeasible"
        if not truth.changed:
            return Observation(outcome, self.base_latency_ms, loss, seconds, unchanged=True)
        noise = self.noise.build * build + self.noise.measurement * measurement
        noise += drift_log(self.noise, elapsed_seconds)
        latency = self.base_latency_ms * factor(truth.log_latency + noise)
        latency *= 1 + spike if spiked else 1
        return Observation(outcome, latency, loss, seconds)

    def digest(self) -> str:
        """Return a digest that changes with anything that a result could depend on."""
        return hashlib.sha256(repr(self).encode("utf-8", "surrogatepass")).hexdigest()

    def _spent(self, failure: Failure | None, log_build: float) -> float:
        if failure is Failure.HANG:
            return self.timeout_seconds
        return self.build_seconds * factor(log_build) * _SHARE_SPENT[failure]
