"""Rate of several streams that run at once, by the host's clock."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from smart_tuner.backends.tensorrt.lane import Lane
    from smart_tuner.devices.cuda import Cuda

AHEAD = 2
"""Runs that wait in each stream."""


class ThroughputTimer:
    """Times windows in which all lanes are kept busy."""

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
        self._done = [[cuda.event() for _ in range(AHEAD)] for _ in lanes]

    def time(self, iterations: int) -> tuple[float, ...]:
        """Run ``iterations`` times in all; milliseconds of the whole window a run, one figure.

        Raises:
            RunError: A run failed.
        """
        count = len(self._lanes)
        started = self._clock()
        for index in range(iterations):
            place = index % count
            lane, done = self._lanes[place], self._done[place][index // count % AHEAD]
            if index >= AHEAD * count:
                done.wait()
            lane.prepare()
            lane.run()
            done.record(lane.stream)
        for lane in self._lanes:
            lane.stream.wait()
        return ((self._clock() - started) / 1e6 / iterations,)

    def close(self) -> None:
        """Give the events back."""
        for events in self._done:
            for event in events:
                event.close()
