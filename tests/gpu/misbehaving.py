"""TensorRT with a runner that does harm, to be contained: ``tests.gpu.misbehaving:...``."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

from smart_tuner.backends.tensorrt.backend import TensorRtBackend
from smart_tuner.backends.tensorrt.runner import TensorRtRunner

if TYPE_CHECKING:
    from smart_tuner.engine.backend import Tensors
    from smart_tuner.engine.build import Engine

NOWHERE = 1 << 20
"""An address where no device memory is."""


class WildRunner(TensorRtRunner):
    """Lets the engine write where there is nothing, once it ran well."""

    def infer(self, inputs: Tensors) -> Tensors:
        found = super().infer(inputs)
        lane = self._lanes[0]
        for name in found:
            lane._context.set_tensor_address(name, NOWHERE)
        return found


class WildBackend(TensorRtBackend):
    """An engine that breaks the CUDA context when it is timed."""

    def load(self, engine: Engine) -> TensorRtRunner:
        return WildRunner(self._find_sdk(), engine)


class DyingBackend(TensorRtBackend):
    """A process that ends while it loads an engine."""

    def load(self, engine: Engine) -> TensorRtRunner:
        os.kill(os.getpid(), signal.SIGSEGV)
        return super().load(engine)
