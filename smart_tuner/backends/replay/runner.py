"""Running a pretended engine: outputs from a digest of the inputs, latencies from a die."""

from __future__ import annotations

import hashlib
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from smart_tuner.backends.replay.outputs import disturbed, exact_outputs
from smart_tuner.engine.running import engine_bytes
from smart_tuner.errors import RunError, UserInputError
from smart_tuner.model.load import load_model
from smart_tuner.simulate.effects import Failure
from smart_tuner.simulate.model_file import load_description

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Self

    from smart_tuner.engine.backend import Tensors
    from smart_tuner.engine.build import Engine

_SCHEMA = 1


def write_engine_file(
    path: Path, model: Path, values: Mapping[str, str], *, build_seed: int, reference: bool
) -> str:
    """Write an engine file; returns its SHA-256."""
    document = {
        "schema": _SCHEMA,
        "model": str(model),
        "values": dict(values),
        "build_seed": build_seed,
        "reference": reference,
    }
    data = json.dumps(document, indent=1).encode()
    path.write_bytes(data)
    return hashlib.sha256(data).hexdigest()


class ReplayRunner:
    """A pretended engine in use."""

    def __init__(self, engine: Engine) -> None:
        """Read the engine file and the description that it was built from.

        Raises:
            RunError: A file is missing or is not the one that was built.
        """
        document: dict[str, Any] = json.loads(engine_bytes(engine))
        model = Path(document["model"])
        try:
            self._model = load_model(model)
            description = load_description(model)
        except UserInputError as error:
            raise RunError(str(error)) from error
        self._compiler = description.compiler
        self._values: dict[str, str] = document["values"]
        self._is_reference: bool = document["reference"]
        self._build_seed: int = document["build_seed"]
        self._real_seconds = description.real_seconds
        seed = None if description.seed is None else (description.seed, self._build_seed)
        self._rng = np.random.default_rng(seed)
        self._is_open = True
        self._exact: Tensors | None = None
        self._left: Tensors = {}

    def __enter__(self) -> Self:
        self._require_open()
        return self

    def __exit__(self, *exc: object) -> None:
        self._is_open = False

    def infer(self, inputs: Tensors) -> Tensors:
        """Return the outputs: a function of the inputs, plus the route's accuracy loss.

        Raises:
            RunError: The inputs do not fit the model, or the route's engine does not run.
        """
        self._require_open()
        self._exact = exact_outputs(self._model, inputs)
        self._run()
        return self.outputs()

    def time_block(self, iterations: int) -> tuple[float, ...]:
        """Return ``iterations`` latencies in milliseconds, at once unless time shall be real.

        Raises:
            RunError: ``infer`` was never called, or the runner is closed.
        """
        exact = self._require_run()
        self._run()
        self._exact = exact
        samples = self._compiler.sample(
            self._values,
            self._build_seed,
            iterations,
            self._rng,
            elapsed_seconds=time.monotonic(),
        )
        time.sleep(float(samples.sum()) / 1e3 * self._real_seconds)
        return tuple(samples.tolist())

    def outputs(self) -> Tensors:
        """Return copies of the last run's outputs.

        Raises:
            RunError: ``infer`` was never called, or the runner is closed.
        """
        self._require_run()
        return {name: array.copy() for name, array in self._left.items()}

    def _run(self) -> None:
        failure = None if self._is_reference else self._compiler.failure(self._values)
        if failure is Failure.RUN_ERROR:
            msg = "The simulated engine fails to run."
            raise RunError(msg)
        exact = self._require_run()
        loss = 0.0 if self._is_reference else self._compiler.loss(self._values)
        if not self._is_reference and self._compiler.jitter:
            loss += self._compiler.jitter * self._rng.uniform(0.5, 1.0)
        self._left = {name: disturbed(array, loss) for name, array in exact.items()}

    def _require_open(self) -> None:
        if not self._is_open:
            msg = "The simulated engine is closed; load it again."
            raise RunError(msg)

    def _require_run(self) -> Tensors:
        self._require_open()
        if self._exact is None:
            msg = "The simulated engine has no inputs yet; call infer first."
            raise RunError(msg)
        return self._exact
