"""One arm of a comparison: a child process with one engine, asked in typed requests."""

from __future__ import annotations

import math
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from smart_tuner.engine.process import ChildProcess
from smart_tuner.errors import ChildTimedOut, RunError
from smart_tuner.trial.failure import failure_from_json
from smart_tuner.trial.fields import Fields, to_json
from smart_tuner.trial.read import read_engine, read_loss, read_platform
from smart_tuner.validate.constraint import constraint_to_json

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from typing_extensions import Self

    from smart_tuner.engine.build import BuildRequest, Engine
    from smart_tuner.engine.platform import Platform
    from smart_tuner.model.spec import ModelSpec
    from smart_tuner.model.workload import ReferencePair, WorkloadPoint
    from smart_tuner.trial.options import EvaluatorOptions
    from smart_tuner.validate.losses import OutputLoss

CHILD_MODULE = "smart_tuner.trial.child"


@dataclass(frozen=True, slots=True)
class RunnerFacts:
    """What a runner says of itself beside its outputs.

    Attributes:
        decided: Settings of the base that the runner chose where the base left the choice open.
        memory_bytes: Device memory that it holds; ``None`` if it cannot say.
        p99_ms: What 99 % of the inferences of its last block took at most; ``None`` if it does
            not measure a throughput.
    """

    decided: Mapping[str, str]
    memory_bytes: int | None
    p99_ms: float | None


class RemoteArm:
    """A child process with one engine.

    Every method raises what the backend raised in the child, ChildTimedOut or ChildDied.
    """

    def __init__(
        self, options: EvaluatorOptions, log: Path, *, deadline_seconds: float | None = None
    ) -> None:
        """Start the child.

        Args:
            options: Names the backend, holds time and memory limits.
            log: File that the child's output is appended to.
            deadline_seconds: Wall-clock seconds for everything together, on top of the limits of
                single requests.
        """
        self._options = options
        self._deadline = math.inf
        if deadline_seconds is not None:
            self._deadline = time.perf_counter() + deadline_seconds
        self._child = ChildProcess(
            CHILD_MODULE,
            log=log,
            memory_limit_bytes=options.memory_limit_bytes,
            python=options.python or sys.executable,
        )
        self._is_started = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """End the child."""
        self._child.close()

    @property
    def is_alive(self) -> bool:
        """Whether the child can be asked."""
        return self._child.is_alive

    @property
    def pid(self) -> int:
        """Process id of the child."""
        return self._child.pid

    @property
    def peak_memory_bytes(self) -> int:
        """Most resident memory that the child was seen with."""
        return self._child.peak_memory_bytes

    def postpone_deadline(self, seconds: float) -> None:
        """Give back time that was lost through no fault of this arm."""
        self._deadline += seconds

    def platform(self) -> Platform:
        """Return the platform as the backend sees it."""
        return read_platform(self._run("platform"))

    def knobs(self, model: ModelSpec | None) -> str:
        """Return the knob database as text that ``knobs.read`` reads."""
        return str(self._ask("knobs", self._options.build_timeout_seconds, model=to_json(model)))

    def build(self, request: BuildRequest, workdir: Path) -> Engine:
        """Build an engine."""
        reply = self._ask(
            "build",
            self._options.build_timeout_seconds,
            request=to_json(request),
            workdir=str(workdir),
        )
        return read_engine(reply)

    def load(self, engine: Engine) -> None:
        """Load an engine."""
        self._run("load", engine=to_json(engine))

    def infer(self, inputs: Path, outputs: Path) -> None:
        """Run on a tensor file and write the outputs to another."""
        self._run("infer", inputs=str(inputs), outputs=str(outputs))

    def repeat(self, inputs: Path, outputs: Path) -> tuple[str, ...]:
        """Run on a tensor file and return how the outputs differ from earlier ones."""
        return tuple(self._run("repeat", inputs=str(inputs), outputs=str(outputs)))

    def facts(self) -> RunnerFacts:
        """Return what the loaded engine's runner says of itself; ask after it has run."""
        fields = Fields(self._run("facts"), "runner")
        return RunnerFacts(
            fields.text_map("decided"),
            fields.optional("memory_bytes", _whole_bytes),
            None if fields.optional("p99_ms", str) is None else fields.number("p99_ms"),
        )

    def cache_keys(self, cache: Path) -> frozenset[str] | None:
        """Return the keys of a timing cache; ``None`` if the backend cannot tell them."""
        keys = self._run("cache_keys", cache=str(cache))
        return None if keys is None else frozenset(map(str, keys))

    def validate(self, point: WorkloadPoint, pair: ReferencePair) -> tuple[OutputLoss, ...]:
        """Run on a reference pair and return one loss an output."""
        return self._losses("validate", inputs=str(pair.inputs), **self._judged(point, pair))

    def check(self, point: WorkloadPoint) -> tuple[OutputLoss, ...]:
        """Return the losses of what the last timed run on a point left behind."""
        return self._losses("check", **self._judged(point, timed_pair(point)))

    def time_block(self, inputs: Path, iterations: int) -> tuple[float, ...]:
        """Time a block and return milliseconds.

        Raises:
            RunError: A figure is not a latency.
        """
        samples = tuple(map(float, self._run("time", inputs=str(inputs), iterations=iterations)))
        wrong = [sample for sample in samples if not 0 < sample < math.inf]
        if wrong or not samples:
            msg = f"The engine reported {wrong[0] if wrong else 'no'} ms as its latency."
            raise RunError(msg)
        return samples

    def _judged(self, point: WorkloadPoint, pair: ReferencePair) -> dict[str, Any]:
        return {
            "outputs": str(pair.outputs),
            "constraint": constraint_to_json(self._options.constraint),
            "point": point.name,
            "pair": pair.name,
        }

    def _losses(self, action: str, **arguments: Any) -> tuple[OutputLoss, ...]:
        return tuple(map(read_loss, self._run(action, **arguments)))

    def _run(self, action: str, **arguments: Any) -> Any:
        return self._ask(action, self._options.run_timeout_seconds, **arguments)

    def _ask(self, action: str, timeout_seconds: float, **arguments: Any) -> Any:
        if not self._is_started:
            self._is_started = True
            self._ask(
                "start",
                self._options.run_timeout_seconds,
                backend=self._options.backend,
                search_path=[] if self._options.python else list(sys.path),
            )
        left = self._deadline - time.perf_counter()
        if left <= 0:
            msg = "the time that the trial was given is over"
            raise ChildTimedOut(msg)
        reply = self._child.request(
            {"do": action, "with": arguments}, timeout_seconds=min(timeout_seconds, left)
        )
        if "failure" in reply:
            raise failure_from_json(reply["failure"])
        return reply["value"]


@dataclass(frozen=True, slots=True)
class PointArm:
    """An arm on the inputs of one workload point; what ``measure.compare`` times."""

    arm: RemoteArm
    inputs: Path

    def time_block(self, iterations: int) -> tuple[float, ...]:
        """Time a block and return milliseconds."""
        return self.arm.time_block(self.inputs, iterations)


def _whole_bytes(data: object) -> int:
    if isinstance(data, bool) or not isinstance(data, int | float) or not 0 <= data < math.inf:
        msg = f"The engine reported {data!r} as the bytes of its memory."
        raise RunError(msg)
    return int(data)


def timed_pair(point: WorkloadPoint) -> ReferencePair:
    """Return the pair whose inputs are timed."""
    return point.search_pairs[0]
