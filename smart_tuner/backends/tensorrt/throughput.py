"""Rate of several streams that run at once, by the host's clock."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from smart_tuner.backends.tensorrt.lane import Lane
    from smart_tuner.devices.cuda import Cuda, Event

AHEAD = 2
"""Runs that wait in each stream."""

LEAST_RUNS = 100
"""Runs of a window below which no tail is claimed."""


class ThroughputTimer:
    """Times windows in which all lanes are kept busy.

    Attributes:
        p99_ms: Milliseconds, by the device's clock, within which 99 % of the last window's runs
            were done once their stream came to them; None if there were too few.
    """

    def __init__(
        self, cuda: Cuda, lanes: Sequence[Lane], clock: Callable[[], int] = time.perf_counter_ns
    ) -> None:
        """Make the events.

        Args:
            cuda: The device.
            lanes: What runs, each on a stream of its own.
            clock: Nanoseconds.
        """
        self._lanes = lanes
        self._clock = clock
        self._begun = [[cuda.event() for _ in range(AHEAD)] for _ in lanes]
        self._done = [[cuda.event() for _ in range(AHEAD)] for _ in lanes]
        self.p99_ms: float | None = None

    def time(self, iterations: int) -> tuple[float, ...]:
        """Run ``iterations`` times in all; milliseconds of the whole window a run, one figure.

        Raises:
            RunError: A run failed.
        """
        slots = AHEAD * len(self._lanes)
        spans: list[float] = []
        started = self._clock()
        for index in range(iterations):
            if index >= slots:
                spans.append(self._span(index - slots))
            lane, begun, done = self._slot(index)
            lane.prepare()
            begun.record(lane.stream)
            lane.run()
            done.record(lane.stream)
        for lane in self._lanes:
            lane.stream.wait()
        window = self._clock() - started
        spans += [self._span(index) for index in range(max(0, iterations - slots), iterations)]
        self.p99_ms = float(np.quantile(spans, 0.99)) if len(spans) >= LEAST_RUNS else None
        return (window / 1e6 / iterations,)

    def _slot(self, index: int) -> tuple[Lane, Event, Event]:
        place, turn = index % len(self._lanes), index // len(self._lanes) % AHEAD
        return self._lanes[place], self._begun[place][turn], self._done[place][turn]

    def _span(self, index: int) -> float:
        """Wait for a run and say how long it took, in milliseconds."""
        _, begun, done = self._slot(index)
        done.wait()
        return done.since(begun)

    def close(self) -> None:
        """Give the events back."""
        for events in (*self._begun, *self._done):
            for event in events:
                event.close()
