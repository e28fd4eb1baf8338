"""ONNX Runtime at a pretended pace: 2 ms a run, a tenth less for each convolution in integers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import onnx

from smart_tuner.backends.onnxruntime.backend import OnnxRuntimeBackend
from smart_tuner.backends.onnxruntime.build import read_engine
from smart_tuner.backends.onnxruntime.runner import OnnxRuntimeRunner

if TYPE_CHECKING:
    from smart_tuner.engine.build import Engine


class PacedRunner(OnnxRuntimeRunner):
    """Computes truly; only its clock is pretended."""

    def __init__(self, *opened: Any) -> None:
        super().__init__(*opened)
        graph = onnx.load(opened[0]).graph
        lowered = sum(
            node.op_type == "Conv" and node.input[1].endswith("int8-read") for node in graph.node
        )
        self.milliseconds = 2.0 * 0.9**lowered

    def time_block(self, iterations: int) -> tuple[float, ...]:
        super().time_block(1)
        return (self.milliseconds,) * iterations


class PacedBackend(OnnxRuntimeBackend):
    """As the real one, but for the clock."""

    def load(self, engine: Engine) -> PacedRunner:
        return PacedRunner(*read_engine(engine))
