"""Timing by the device's clock: four events a run, or two around several short runs.

The host runs ahead of the device by a few samples, so that its own work does not count; where it
cannot keep up, the device waits for it, and that does count, as it does for every caller.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from smart_tuner.backends.tensorrt.lane import Lane
    from smart_tuner.devices.cuda import Cuda, Event

AHEAD = 4
"""Samples that are queued before the first of them is waited for."""

SHORTEST_MS = 0.2
"""Runs below this are not timed one by one: an event's clock ticks every half microsecond."""

BRACKET_MS = 0.5
"""What a sample of several runs aims to last."""

MOST_RUNS_A_SAMPLE = 1_000
_LOOKS = 5
_EVENTS = 4
_END_TO_END, _COMPUTE = (0, 3), (1, 2)


class SpanTimer:
    """Times runs of one lane.

    Attributes:
        runs_per_sample: Runs behind one sample; 0 until it was found out for these inputs.
    """

    def __init__(self, cuda: Cuda, lane: Lane, *, compute_only: bool) -> None:
        """Make the events.

        Args:
            cuda: The device.
            lane: What is timed.
            compute_only: Whether copies of inputs and outputs are left out of the figures.
        """
        self._lane = lane
        self._compute_only = compute_only
        self._span = _COMPUTE if compute_only else _END_TO_END
        self._events = [[cuda.event() for _ in range(_EVENTS)] for _ in range(AHEAD)]
        self.runs_per_sample = 0

    def time(self, iterations: int) -> tuple[float, ...]:
        """Run ``iterations`` times or a few more; milliseconds a run.

        Raises:
            RunError: A run failed.
        """
        if not self.runs_per_sample:
            self.runs_per_sample = self._find_runs_per_sample()
        if self.runs_per_sample == 1:
            return self.spans(iterations)
        return self._brackets(-(-iterations // self.runs_per_sample), self.runs_per_sample)

    def spans(self, iterations: int) -> tuple[float, ...]:
        """Time each run by itself; milliseconds.

        Raises:
            RunError: A run failed.
        """
        return self._sample(iterations, self._queue_run, self._span)

    def close(self) -> None:
        """Give the events back."""
        for events in self._events:
            for event in events:
                event.close()

    def _find_runs_per_sample(self) -> int:
        if self._lane.has_pauses:
            # What lies between the runs would be part of the figure.
            return 1
        fastest = min(self.spans(_LOOKS))
        if fastest >= SHORTEST_MS:
            return 1
        return min(MOST_RUNS_A_SAMPLE, math.ceil(BRACKET_MS / max(fastest, 1e-6)))

    def _brackets(self, samples: int, runs: int) -> tuple[float, ...]:
        work = self._lane.compute if self._compute_only else self._lane.run

        def queue(events: Sequence[Event]) -> None:
            events[0].record(self._lane.stream)
            for _ in range(runs):
                work()
            events[3].record(self._lane.stream)

        return tuple(span / runs for span in self._sample(samples, queue, _END_TO_END))

    def _queue_run(self, events: Sequence[Event]) -> None:
        lane, stream = self._lane, self._lane.stream
        lane.prepare()
        events[0].record(stream)
        lane.copy_in()
        events[1].record(stream)
        lane.compute()
        events[2].record(stream)
        lane.copy_out()
        events[3].record(stream)

    def _sample(
        self,
        samples: int,
        queue: Callable[[Sequence[Event]], None],
        span: tuple[int, int],
    ) -> tuple[float, ...]:
        """Queue samples, at most ``AHEAD`` at a time, and read their spans."""
        figures: list[float] = []
        for index in range(samples + AHEAD):
            events = self._events[index % AHEAD]
            if index >= AHEAD and len(figures) < samples:
                events[3].wait()
                figures.append(events[span[1]].since(events[span[0]]))
            if index < samples:
                queue(events)
        return tuple(figures)
