"""A loaded engine: what the evaluator runs and times."""

from __future__ import annotations

from contextlib import ExitStack
from statistics import median
from typing import TYPE_CHECKING

from smart_tuner.backends.tensorrt.elements import restored
from smart_tuner.backends.tensorrt.events import SpanTimer
from smart_tuner.backends.tensorrt.lane import Lane
from smart_tuner.backends.tensorrt.loading import declared_types, load_engine
from smart_tuner.backends.tensorrt.throughput import ThroughputTimer
from smart_tuner.devices.cuda import open_cuda
from smart_tuner.engine.running import no_collection, run_errors
from smart_tuner.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Self

    from smart_tuner.backends.tensorrt.sdk import Sdk
    from smart_tuner.devices.cuda import Cuda
    from smart_tuner.engine.backend import Tensors
    from smart_tuner.engine.build import Engine

LOOKS = 20
"""Runs of each launch mode that ``launch = auto`` compares."""

ENQUEUE_GAIN = 0.98
"""Launching kernel by kernel is taken if it needs less than this share of the graph's time."""


class TensorRtRunner:
    """Runs one engine on one GPU.

    Outputs are poisoned before each ``infer`` and each block. States (outputs that overwrite an
    input) are put back before every run that counts, outside what is timed. Under ``graph`` what
    ``infer`` returns was run as a graph too.
    """

    def __init__(self, sdk: Sdk, engine: Engine, cuda: Cuda | None = None) -> None:
        """Load an engine.

        Args:
            sdk: The SDK that built it.
            engine: The engine.
            cuda: Where it runs; the first visible GPU by default.

        Raises:
            RunError: The file is not the one that was built, is of another GPU or version, or
                there is no memory for it.
            EnvironmentNotFit: There is no GPU, or its driver does not do.
        """
        self._cuda = open_cuda() if cuda is None else cuda
        self._free_before = self._cuda.free_bytes()
        self._owned = ExitStack()
        self._has_run = False
        self._is_closed = False
        with ExitStack() as owned, run_errors("the engine did not load"):
            loaded = load_engine(sdk, engine, self._cuda)
            settings = loaded.settings
            self._lanes = []
            for _ in range(settings.streams):
                lane = Lane(self._cuda, loaded)
                owned.callback(lane.close)
                self._lanes.append(lane)
            compute_only = settings.objective == "compute"
            self._spans = SpanTimer(self._cuda, self._lanes[0], compute_only=compute_only)
            owned.callback(self._spans.close)
            self._rate: ThroughputTimer | None = None
            if settings.objective == "throughput":
                self._rate = ThroughputTimer(self._cuda, self._lanes)
                owned.callback(self._rate.close)
            self._declared = declared_types(engine.request.model)
            self._owned = owned.pop_all()
        self._launch = settings.launch
        self._context_bytes = loaded.context_bytes()
        self._memory_bytes: int | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._is_closed = True
        self._has_run = False
        with run_errors("the engine was not closed"):
            self._owned.close()

    @property
    def decided(self) -> Mapping[str, str]:
        """Settings that were left open and are settled now; the other arm is run alike."""
        return {} if self._launch == "auto" else {"launch": self._launch}

    @property
    def memory_bytes(self) -> int | None:
        """Device memory that the engine takes with weights, contexts, inputs and outputs.

        What the whole GPU lost since before the load, but at least what is known to be ours;
        None before the first ``infer``.
        """
        return self._memory_bytes

    @property
    def p99_ms(self) -> float | None:
        """What 99 % of the last window's runs took at most, under ``objective = throughput``."""
        return None if self._rate is None else self._rate.p99_ms

    @property
    def runs_per_sample(self) -> int:
        """Runs behind one sample of ``time_block``; 0 before the first block on these inputs."""
        return self._spans.runs_per_sample

    def infer(self, inputs: Tensors) -> Tensors:
        """Poison the outputs, run once and return copies of them.

        Args:
            inputs: Every input by name; other names are ignored, since a compiler may drop
                inputs that nothing reads.

        Raises:
            RunError: An input is missing or does not fit, the run failed, or it cannot be
                captured under ``launch = graph``.
        """
        self._require_open()
        self._has_run = False
        self._spans.runs_per_sample = 0
        with run_errors("the engine did not run"):
            for lane in self._lanes:
                lane.feed(inputs)
            self._settle_launch()
            for lane in self._lanes:
                lane.poison()
                lane.prepare()
                lane.copy_in()
                lane.compute()
                lane.stream.wait()
            self._memory_bytes = self._measure_memory()
            self._has_run = True
            return self.outputs()

    def time_block(self, iterations: int) -> tuple[float, ...]:
        """Run on the inputs of the last ``infer``; milliseconds as the objective says.

        Under ``throughput`` one figure: the time of the whole block over its runs.

        Raises:
            RunError: A run failed, or ``infer`` was never called.
        """
        self._require_run("time_block needs an infer first: it times the inputs of the last one")
        with run_errors("the engine did not run"), no_collection():
            for lane in self._lanes:
                lane.poison()
                lane.stream.wait()
            timer = self._spans if self._rate is None else self._rate
            return timer.time(iterations)

    def outputs(self) -> Tensors:
        """Return copies of what the last run, timed or not, left behind.

        Raises:
            RunError: There was no run.
        """
        self._require_run("no outputs before the first infer")
        with run_errors("the outputs cannot be fetched"):
            found = self._lanes[0].outputs()
        return {name: restored(array, self._declared.get(name)) for name, array in found.items()}

    def _settle_launch(self) -> None:
        """Use graphs if that is asked for, or if it is left open and they are faster."""
        if self._launch == "auto":
            self._launch = self._faster_launch()
        if self._launch == "graph":
            for lane in self._lanes:
                lane.use_graphs()

    def _faster_launch(self) -> str:
        lane = self._lanes[0]
        enqueued = median(self._spans.spans(LOOKS))
        try:
            lane.use_graphs()
        except RunError:
            # Raises again if it was not only the capture that failed.
            self._cuda.calls.require_alive()
            return "enqueue"
        graphed = median(self._spans.spans(LOOKS))
        if enqueued < ENQUEUE_GAIN * graphed:
            lane.uses_graphs = False
            return "enqueue"
        return "graph"

    def _measure_memory(self) -> int:
        known = sum(lane.device_bytes + self._context_bytes for lane in self._lanes)
        return max(known, self._free_before - self._cuda.free_bytes())

    def _require_open(self) -> None:
        if self._is_closed:
            msg = "the engine was closed"
            raise RunError(msg)
        self._cuda.calls.require_alive()

    def _require_run(self, otherwise: str) -> None:
        self._require_open()
        if not self._has_run:
            raise RunError(otherwise)
