"""The child process in which one route is built, checked and timed: one arm a process.

Always one process an arm: some settings hold for a whole process, decided by whoever comes first.
Run as ``python -m smart_tuner.trial.child``; imports stay light.
"""

from __future__ import annotations

import logging
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smart_tuner.engine.backend import load_backend
from smart_tuner.engine.channel import Message, serve
from smart_tuner.errors import BuildError, EnvironmentNotFit, RunError
from smart_tuner.knobs.read import write_database
from smart_tuner.model.tensors import load_tensors, save_tensors
from smart_tuner.trial.failure import failure_to_json
from smart_tuner.trial.fields import to_json
from smart_tuner.trial.lowered import build_lowered
from smart_tuner.trial.read import read_engine, read_model, read_request
from smart_tuner.trial.repeatability import differences
from smart_tuner.trial.rest import come_to_rest
from smart_tuner.validate.constraint import constraint_from_json
from smart_tuner.validate.losses import losses_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from smart_tuner.engine.backend import Backend, EngineRunner, Tensors

_LOGGER = logging.getLogger(__name__)


class Worker:
    """One backend with at most one engine; every request is a method."""

    def __init__(self) -> None:
        """Wait for ``start``."""
        self._judge = _clean_thread()
        self._loaded = ExitStack()
        self._backend: Backend | None = None
        self._runner: EngineRunner | None = None
        self._fed: str | None = None
        self._actions: dict[str, tuple[Callable[..., Any], type[BuildError | RunError | Any]]] = {
            "start": (self.start, EnvironmentNotFit),
            "platform": (self.platform, EnvironmentNotFit),
            "knobs": (self.knobs, EnvironmentNotFit),
            "build": (self.build, BuildError),
            "load": (self.load, RunError),
            "infer": (self.infer, RunError),
            "repeat": (self.repeat, RunError),
            "validate": (self.validate, RunError),
            "time": (self.time, RunError),
            "check": (self.check, RunError),
            "facts": (self.facts, RunError),
            "cache_keys": (self.cache_keys, RunError),
        }

    def handle(self, message: Message) -> Message:
        """Do what a message asks for and return the value, or the failure as data."""
        action, otherwise = self._actions[message["do"]]
        try:
            return {"value": action(**message["with"])}
        except Exception as error:
            _LOGGER.exception("%s failed", message["do"])
            return {"failure": failure_to_json(error, otherwise)}

    def start(self, backend: str, search_path: list[str]) -> None:
        """Load the backend, with the parent's import path: own backends and metrics are found.

        Another environment than the parent's keeps its own path, and gets none.
        """
        sys.path[:] = search_path or sys.path
        self._backend = load_backend(backend)

    def platform(self) -> Any:
        """Return the platform."""
        return to_json(self._require_backend().platform())

    def knobs(self, model: object) -> str:
        """Return the knob database as text; with a model, idle knobs are marked."""
        spec = None if model is None else read_model(model)
        return write_database(self._require_backend().knobs(spec))

    def build(self, request: object, workdir: str) -> Any:
        """Build an engine."""
        return to_json(
            build_lowered(self._require_backend(), read_request(request), Path(workdir))
        )

    def load(self, engine: object) -> None:
        """Load an engine, built here or earlier; one loaded before is closed."""
        self._loaded.close()
        self._runner, self._fed = None, None
        runner = self._require_backend().load(read_engine(engine))
        self._runner = self._loaded.enter_context(runner)

    def infer(self, inputs: str, outputs: str) -> None:
        """Run on a tensor file and write the outputs to another."""
        save_tensors(Path(outputs), self._run(inputs))

    def repeat(self, inputs: str, outputs: str) -> list[str]:
        """Run on a tensor file and say how the outputs differ from earlier ones."""
        earlier, now = load_tensors(Path(outputs)), self._run(inputs)
        return list(self._judge.submit(differences, earlier, now).result())

    def validate(self, inputs: str, **judged: Any) -> Any:
        """Run on a tensor file and return the losses against the reference outputs."""
        return self._judge.submit(_losses, self._run(inputs), **judged).result()

    def time(self, inputs: str, iterations: int) -> Any:
        """Time a block on a tensor file and return milliseconds, once the engine is at rest."""
        runner = self._require_runner()
        if self._fed != inputs:
            self._run(inputs)
        samples = [float(sample) for sample in runner.time_block(iterations)]
        come_to_rest()
        return to_json(samples)

    def check(self, **judged: Any) -> Any:
        """Return the losses of what the last run, timed or not, left behind."""
        return self._judge.submit(_losses, self._require_runner().outputs(), **judged).result()

    def facts(self) -> Any:
        """Return what the runner decided, the device memory that it holds, and its tail."""
        runner = self._require_runner()
        figures = {name: getattr(runner, name, None) for name in ("memory_bytes", "p99_ms")}
        return to_json({"decided": getattr(runner, "decided", {}), **figures})

    def cache_keys(self, cache: str) -> list[str] | None:
        """Return the keys of a timing cache, if the backend can tell them."""
        tell = getattr(self._require_backend(), "timing_cache_keys", None)
        keys = None if tell is None else tell(Path(cache))
        return None if keys is None else sorted(map(str, keys))

    def _run(self, inputs: str) -> Tensors:
        runner = self._require_runner()
        self._fed = None
        outputs = runner.infer(load_tensors(Path(inputs)))
        self._fed = inputs
        return outputs

    def _require_backend(self) -> Backend:
        if self._backend is None:
            msg = "The child was not started."
            raise EnvironmentNotFit(msg)
        return self._backend

    def _require_runner(self) -> EngineRunner:
        if self._runner is None:
            msg = "No engine is loaded."
            raise RunError(msg)
        return self._runner


def _clean_thread() -> ThreadPoolExecutor:
    """A thread whose floating-point state no backend has touched, to judge outputs in.

    A runtime may make its calling thread flush denormals to zero; there, a wrong zero would equal
    the tiny reference. Threads inherit that state when they start, so this one starts first.
    """
    executor = ThreadPoolExecutor(max_workers=1)
    executor.submit(float).result()
    return executor


def _losses(
    actual: Tensors, outputs: str, constraint: dict[str, Any], point: str, pair: str
) -> Any:
    reference = load_tensors(Path(outputs))
    judge = constraint_from_json(constraint)
    return to_json(losses_of(reference, actual, judge, point=point, pair=pair))


def main() -> None:
    """Serve the parent until it hangs up."""
    serve(Worker().handle)


if __name__ == "__main__":
    main()
