"""TensorRT's runtime half in memory: engines that are Python functions on fake device memory."""
# ruff: noqa: N802 - spelt as the SDK spells them

from __future__ import annotations

import ctypes
import hashlib
import math
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from smart_tuner.backends.tensorrt.sdk import Sdk
from smart_tuner.engine.build import BuildRequest, Engine
from smart_tuner.model.dtypes import numpy_type

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    import numpy.typing as npt

    from smart_tuner.backends.tensorrt import api
    from tests.fake_tensorrt.fake_cuda import FakeCuda

    Arrays = dict[str, npt.NDArray[Any]]
    Shape = tuple[int, ...]

DTYPES = {"FLOAT": "float32", "HALF": "float16", "INT32": "int32", "INT64": "int64"}
Type = Enum("Type", ["FLOAT", "HALF", "INT32", "INT64", "COMPLEX"])
Mode = Enum("Mode", ["INPUT", "OUTPUT"])
Place = Enum("Place", ["DEVICE", "HOST"])
Verbosity = Enum("Verbosity", ["LAYER_NAMES_ONLY", "NONE"])


@dataclass(frozen=True)
class Port:
    """An input or output; ``shape`` has -1 where the input's shape decides."""

    name: str
    shape: Shape
    dtype: str = "FLOAT"
    place: str = "DEVICE"
    profiles: tuple[tuple[Shape, Shape, Shape], ...] = ()
    alias: str = ""


@dataclass
class Plan:
    """An engine.

    Attributes:
        inputs: Its inputs.
        outputs: Its outputs.
        compute: From arrays to arrays.
        shape_of: Shape of an output, from the shapes of the inputs; -1 where data decides.
        ms: How long it computes.
        launch_ms: How long it takes longer without a graph.
        is_capturable: Whether it can be recorded.
        context_bytes: Device memory of a context.
        breaks: Called instead of computing.
        streamable: Bytes of weights that may stay on the host; None in an older version.
    """

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    compute: Callable[[Arrays], Arrays]
    shape_of: Callable[[str, Mapping[str, Shape]], Shape] | None = None
    ms: float = 1.0
    launch_ms: float = 0.5
    is_capturable: bool = True
    context_bytes: int = 1024
    breaks: Callable[[], None] | None = None
    streamable: int | None = None
    runs: int = 0


class Logger:
    """Base of loggers; keeps the last one, so that the fake can speak."""

    def log(self, severity: int, text: str) -> None:
        raise NotImplementedError


class Allocator:
    """Base of output allocators."""


class FakeContext:
    def __init__(self, engine: FakeEngine, memory: int) -> None:
        self._engine, self._memory = engine, memory
        self._shapes: dict[str, Shape] = {}
        self._addresses: dict[str, int] = {}
        self._allocators: dict[str, Any] = {}
        self.nvtx_verbosity = Verbosity.LAYER_NAMES_ONLY
        self.profile = -1

    def set_optimization_profile_async(self, index: int, _stream: int) -> bool:
        self.profile = index
        return True

    def set_input_shape(self, name: str, shape: Shape) -> bool:
        declared = self._engine.ports[name].shape
        fits = len(shape) == len(declared) and all(
            wanted in (-1, size) for wanted, size in zip(declared, shape, strict=True)
        )
        if not fits:
            self._engine.say(f"Error Code 3: shape {shape} does not fit {declared}")
            return False
        self._shapes[name] = tuple(shape)
        return True

    def infer_shapes(self) -> list[str]:
        return [port.name for port in self._engine.plan.inputs if port.name not in self._shapes]

    def get_tensor_shape(self, name: str) -> Shape:
        if name in self._shapes:
            return self._shapes[name]
        plan, port = self._engine.plan, self._engine.ports[name]
        return plan.shape_of(name, self._shapes) if plan.shape_of else port.shape

    def get_tensor_strides(self, name: str) -> Shape:
        shape = self.get_tensor_shape(name)
        return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))

    def set_tensor_address(self, name: str, memory: int) -> bool:
        self._addresses[name] = memory
        return True

    def set_output_allocator(self, name: str, allocator: Any) -> bool:
        self._allocators[name] = allocator
        return True

    def execute_async_v3(self, stream: int) -> bool:
        plan, cuda = self._engine.plan, self._engine.cuda
        is_recorded = stream in cuda.recordings
        if is_recorded and not plan.is_capturable:
            cuda.spoil(stream)
            self._engine.say("Error Code 1: operation not permitted when stream is capturing")
            return False
        cuda.queue(stream, plan.ms + (0 if is_recorded else plan.launch_ms), self._compute)
        return cuda.sticky is None and self._engine.ran

    def _compute(self) -> None:
        plan = self._engine.plan
        plan.runs += 1
        if plan.breaks is not None:
            plan.breaks()
            return
        arrays = {
            port.name: read(self._addresses[port.name], self._shapes[port.name], port.dtype)
            for port in plan.inputs
        }
        self._engine.ran = True
        for name, array in plan.compute(arrays).items():
            address = self._addresses.get(name, 0)
            if name in self._allocators:
                address = self._allocators[name].reallocate_output(name, 0, array.nbytes, 256)
                if not address:
                    self._engine.say("Error Code 1: no memory for an output")
                    self._engine.ran = False
                    return
                self._allocators[name].notify_shape(name, array.shape)
            kind = numpy_type(DTYPES[self._engine.ports[name].dtype])
            data = np.ascontiguousarray(array.astype(kind))
            ctypes.memmove(address, data.ctypes.data, data.nbytes)


class FakeEngine:
    def __init__(self, plan: Plan, cuda: FakeCuda, logger: Any) -> None:
        self.plan, self.cuda, self._logger = plan, cuda, logger
        self.ports = {port.name: port for port in (*plan.inputs, *plan.outputs)}
        self.contexts: list[FakeContext] = []
        self.ran = True
        self.refittable = False
        size = plan.streamable
        if size is not None:
            self.streamable_weights_size = self.weight_streaming_budget_v2 = size
            self.get_weight_streaming_automatic_budget = lambda: size // 2

    def say(self, text: str) -> None:
        self._logger.log(1, text)

    @property
    def num_io_tensors(self) -> int:
        return len(self.ports)

    @property
    def device_memory_size_v2(self) -> int:
        return self.plan.context_bytes

    @property
    def num_optimization_profiles(self) -> int:
        return max([1, *(len(port.profiles) for port in self.plan.inputs)])

    def get_tensor_name(self, index: int) -> str:
        return [*self.ports][index]

    def get_tensor_mode(self, name: str) -> Enum:
        is_input = self.ports[name] in self.plan.inputs
        return Mode["INPUT" if is_input else "OUTPUT"]

    def get_tensor_dtype(self, name: str) -> Enum:
        return Type[self.ports[name].dtype]

    def get_tensor_shape(self, name: str) -> Shape:
        return self.ports[name].shape

    def get_tensor_location(self, name: str) -> Enum:
        return Place[self.ports[name].place]

    def get_tensor_profile_shape(self, name: str, index: int) -> list[Shape]:
        return list(self.ports[name].profiles[index])

    def get_tensor_vectorized_dim(self, _name: str) -> int:
        return -1

    def get_tensor_components_per_element(self, _name: str) -> int:
        return 1

    def get_aliased_input_tensor(self, name: str) -> str | None:
        return self.ports[name].alias or None

    def create_execution_context(self) -> FakeContext | None:
        if self.cuda.used_bytes + self.plan.context_bytes > self.cuda.memory_bytes:
            self.say("Error Code 2: OutOfMemory (no further information)")
            return None
        _, memory = self.cuda.cudaMalloc(self.plan.context_bytes)
        self.contexts.append(FakeContext(self, memory))
        return self.contexts[-1]

    def create_engine_inspector(self) -> Any:
        raise NotImplementedError


@dataclass
class FakeModule:
    """What ``import tensorrt`` gives, as far as it runs engines.

    Attributes:
        cuda: The GPU.
        plans: Engines by the bytes of their file.
        loaded: Every engine that was loaded.
        heard: The first logger; the SDK ignores those that come later.
    """

    cuda: FakeCuda
    plans: dict[bytes, Plan] = field(default_factory=dict)
    loaded: list[FakeEngine] = field(default_factory=list)
    heard: Any = None

    __version__ = "0.1"
    ILogger = Logger
    IOutputAllocator = Allocator
    ProfilingVerbosity = Verbosity
    DataType = Type
    TensorIOMode = Mode
    TensorLocation = Place

    def Runtime(self, logger: Any) -> FakeRuntime:
        self.heard = self.heard or logger
        return FakeRuntime(self, self.heard)

    def init_libnvinfer_plugins(self, _logger: object, _namespace: str) -> bool:
        return True


class FakeRuntime:
    def __init__(self, module: FakeModule, logger: Any) -> None:
        self._module, self._logger = module, logger

    def deserialize_cuda_engine(self, data: bytes) -> FakeEngine | None:
        plan = self._module.plans.get(bytes(data))
        if plan is None:
            self._logger.log(1, "Error Code 1: Serialization (magic tag does not match)")
            return None
        self._module.loaded.append(FakeEngine(plan, self._module.cuda, self._logger))
        return self._module.loaded[-1]


def fake_sdk(module: FakeModule) -> Sdk:
    """The SDK as the backend sees it."""
    return Sdk(cast("api.Module", module), "tensorrt", "0.1")


def write_engine(
    module: FakeModule, plan: Plan, folder: Path, base: Mapping[str, str] | None = None
) -> Engine:
    """Put an engine into a file."""
    path = folder / "engine.plan"
    data = f"plan {len(module.plans)}".encode()
    path.write_bytes(data)
    module.plans[data] = plan
    digest = hashlib.sha256(data).hexdigest()
    request = BuildRequest(folder / "model.onnx", base=dict(base or {}))
    return Engine(path, digest, "fingerprint", request, build_seconds=1.0)


def read(address: int, shape: Shape, dtype: str) -> npt.NDArray[Any]:
    """Copy an array out of memory."""
    kind = numpy_type(DTYPES[dtype])
    data = ctypes.string_at(address, math.prod(shape) * kind.itemsize)
    return np.frombuffer(data, kind).reshape(shape)
