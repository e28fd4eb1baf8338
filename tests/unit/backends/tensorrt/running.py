"""Engines in memory, ready to run: what the tests of the runner share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from smart_tuner.backends.tensorrt.runner import TensorRtRunner
from smart_tuner.devices.cuda import open_cuda
from tests.fake_tensorrt.fake_cuda import FakeCuda
from tests.fake_tensorrt.fake_cuda_engine import (
    FakeModule,
    Plan,
    Port,
    fake_sdk,
    write_engine,
)

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

ROW = np.arange(4, dtype=np.float32).reshape(1, 4)


@dataclass
class Bench:
    """One GPU, the SDK and a folder."""

    cuda: FakeCuda
    module: FakeModule
    folder: Path

    def open(self, plan: Plan, **base: str) -> TensorRtRunner:
        """Load an engine with these settings."""
        engine = write_engine(self.module, plan, self.folder, base)
        return TensorRtRunner(fake_sdk(self.module), engine, open_cuda(module=self.cuda))


def bench(folder: Path, **cuda: Any) -> Bench:
    gpu = FakeCuda(**cuda)
    return Bench(gpu, FakeModule(gpu), folder)


def doubling(**changes: Any) -> Plan:
    """One input of shape 1 x 4, one output: twice the input."""
    fields: dict[str, Any] = {
        "inputs": (Port("x", (1, 4)),),
        "outputs": (Port("y", (1, 4)),),
        "compute": lambda arrays: {"y": arrays["x"] * 2},
    }
    return Plan(**(fields | changes))


def any_batch(**changes: Any) -> Plan:
    """The same for batches of 1 to 4, and of 8 to 16 tuned for 8."""
    profiles = (((1, 4), (2, 4), (4, 4)), ((8, 4), (8, 4), (16, 4)), ((1, 4), (3, 4), (4, 4)))
    return doubling(
        inputs=(Port("x", (-1, 4), profiles=profiles),),
        outputs=(Port("y", (-1, 4)),),
        shape_of=lambda _name, shapes: shapes["x"],
        **changes,
    )


def nonzero(**changes: Any) -> Plan:
    """Positions of the elements that are not zero: their number depends on data."""

    def compute(arrays: dict[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
        return {"y": np.stack(np.nonzero(arrays["x"]))}

    fields: dict[str, Any] = {
        "outputs": (Port("y", (2, -1), "INT32"),),
        "compute": compute,
        "shape_of": lambda _name, _shapes: (2, -1),
    }
    return doubling(**(fields | changes))


def counting(**changes: Any) -> Plan:
    """A state that grows by the input at each run, and its sum as an output."""

    def compute(arrays: dict[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
        present = arrays["past"] + arrays["x"]
        return {"present": present, "y": present.sum(keepdims=True)}

    fields: dict[str, Any] = {
        "inputs": (Port("x", (1, 4)), Port("past", (1, 4))),
        "outputs": (Port("present", (1, 4)), Port("y", (1, 1))),
        "compute": compute,
    }
    return Plan(**(fields | changes))
