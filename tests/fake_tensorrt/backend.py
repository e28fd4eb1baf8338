"""The TensorRT backend over the fake SDK: its own code, but for the GPU and what runs there.

``--backend tests.fake_tensorrt.backend:FakeTensorRtBackend``; the environment names the scenario.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from smart_tuner.backends.tensorrt import platform as platforms
from smart_tuner.backends.tensorrt.backend import TensorRtBackend
from smart_tuner.backends.tensorrt.logger import make_log
from smart_tuner.backends.tensorrt.plan import open_engine
from smart_tuner.devices.cuda import CudaDevice
from smart_tuner.engine.platform import Platform
from smart_tuner.errors import RunError
from smart_tuner.simulate.effects import Failure
from tests.fake_tensorrt.scenario import current_scenario
from tests.fake_tensorrt.sdk import make_sdk

if TYPE_CHECKING:
    from pathlib import Path

    from typing_extensions import Self

    from smart_tuner.backends.tensorrt.sdk import Sdk
    from smart_tuner.engine.backend import Tensors
    from smart_tuner.engine.build import BuildRequest, Engine

MISTIMED = 1.15
"""How much slower an engine is whose kernels were chosen by another route's timings."""

GPU = CudaDevice(0, "Fake GPU", "GPU-fake", "0000:00:00.0", "90", 50 << 20, 80 << 30)


def _fake_gpu() -> Any:
    return patch.object(platforms, "visible_devices", lambda: (GPU,))


class FakeTensorRtBackend(TensorRtBackend):
    """Builds with the real code; runs engines by the simulated compiler's word."""

    def __init__(self) -> None:
        super().__init__(lambda: make_sdk(current_scenario()))

    def platform(self) -> Platform:
        """A GPU that says that nothing here is real."""
        sdk = self._find_sdk()
        return Platform(GPU.name, "none", str(sdk), self.knobs().tuner_version)

    def build(self, request: BuildRequest, workdir: Path) -> Engine:
        """Build for the fake GPU."""
        with _fake_gpu():
            return super().build(request, workdir)

    def load(self, engine: Engine) -> FakeRunner:  # type: ignore[override]  # no GPU, no real one
        """Load a plan as the real runner would, for the fake GPU."""
        return FakeRunner(self._find_sdk(), engine)


class FakeRunner:
    """Outputs of the reference implementation of ONNX, latencies of the simulated compiler."""

    def __init__(self, sdk: Sdk, engine: Engine) -> None:
        with _fake_gpu():
            _, loaded = open_engine(sdk, engine, make_log(sdk))
        plan: dict[str, Any] = loaded.plan  # type: ignore[attr-defined]  # a fake engine has one
        self._compiler = current_scenario().compiler
        self._values = dict(plan["effects"])
        self._factor = MISTIMED if plan["is_mistimed"] else 1.0
        self._session = ReferenceEvaluator(onnx.load(plan["model"]))
        self._rng = np.random.default_rng()
        self._left: Tensors = {}
        self._is_open = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._left, self._is_open = {}, False

    def infer(self, inputs: Tensors) -> Tensors:
        """Run once."""
        if self._compiler.failure(self._values) is Failure.RUN_ERROR or not self._is_open:
            raise RunError("the fake engine does not run")
        loss = self._compiler.loss(self._values)
        names = [output.name for output in self._session.proto_.graph.output]
        try:
            exact = self._session.run(None, dict(inputs))
        except RuntimeError as error:
            raise RunError(str(error)) from error
        shift = np.float32(loss if math.isfinite(loss) else math.nan)
        self._left = {
            name: np.asarray(array + shift if array.dtype.kind == "f" else array)
            for name, array in zip(names, exact, strict=True)
        }
        return self.outputs()

    def time_block(self, iterations: int) -> tuple[float, ...]:
        """Draw latencies."""
        if not self._left:
            raise RunError("infer was never called")
        samples = self._compiler.sample(self._values, 1, iterations, self._rng)
        return tuple((samples * self._factor).tolist())

    def outputs(self) -> Tensors:
        """What the last run left."""
        if not self._left:
            raise RunError("infer was never called")
        return {name: array.copy() for name, array in self._left.items()}
