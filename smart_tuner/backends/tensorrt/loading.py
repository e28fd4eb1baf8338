"""From a plan file to an engine that can make contexts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from smart_tuner.backends.tensorrt import api
from smart_tuner.backends.tensorrt.logger import make_log
from smart_tuner.backends.tensorrt.plan import open_engine
from smart_tuner.backends.tensorrt.ports import ports_of
from smart_tuner.backends.tensorrt.run_settings import read_run_settings
from smart_tuner.errors import RunError
from smart_tuner.model.declared import declared_outputs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from smart_tuner.backends.tensorrt.logger import BuildLog
    from smart_tuner.backends.tensorrt.ports import Port
    from smart_tuner.backends.tensorrt.run_settings import RunSettings
    from smart_tuner.backends.tensorrt.sdk import Sdk
    from smart_tuner.devices.cuda import Cuda
    from smart_tuner.engine.build import Engine


def load_engine(sdk: Sdk, engine: Engine, cuda: Cuda) -> LoadedEngine:
    """Load an engine onto a device.

    Raises:
        RunError: The file is not the one that was built, is of another GPU or version, does not
            load, or its base does not fit it.
        EnvironmentNotFit: A plugin does not load.
    """
    log = make_log(sdk)
    settings = read_run_settings(engine.request.base)
    runtime, loaded = open_engine(sdk, engine, log)
    _stream_weights(loaded, engine.request.base.get("weight_streaming_budget", "off"))
    ports = ports_of(loaded, settings.states)
    return LoadedEngine(cuda, sdk.module, runtime, loaded, log, ports, settings)


def _stream_weights(engine: api.CudaEngine, budget: str) -> None:
    """Say how many bytes of weights may lie on the device; the rest comes from the host.

    Raises:
        RunError: The engine keeps all of its weights, or does not take the budget.
    """
    if budget == "off":
        return
    if not isinstance(engine, api.HasWeightStreaming):
        msg = f"weight_streaming_budget = {budget}: this version cannot stream weights"
        raise RunError(msg)
    wanted = engine.get_weight_streaming_automatic_budget() if budget == "auto" else int(budget)
    wanted = min(wanted, engine.streamable_weights_size)
    engine.weight_streaming_budget_v2 = wanted
    if engine.weight_streaming_budget_v2 != wanted:
        msg = (
            f"weight_streaming_budget = {budget}: the engine took "
            f"{engine.weight_streaming_budget_v2} bytes instead of {wanted}"
        )
        raise RunError(msg)


def declared_types(model: Path) -> Mapping[str, str]:
    """Element type of each output, as the model declares it; weights beside it are not read.

    An engine may give another one: TensorRT 8.6 computes INT64 as INT32.

    Returns:
        Nothing if the model is gone: a plan runs without it.
    """
    import onnx
    from google.protobuf.message import DecodeError

    try:
        graph = onnx.load(model, load_external_data=False).graph
    except (OSError, DecodeError):
        return {}
    return {spec.name: spec.dtype for spec in declared_outputs(graph, model)}


@dataclass(frozen=True, slots=True)
class LoadedEngine:
    """A deserialized engine, with what is needed to speak of its failures.

    Attributes:
        cuda: The device that it lies on.
        module: The SDK's module.
        runtime: The SDK's runtime, which must outlive the engine.
        engine: The engine.
        log: What the SDK says.
        ports: Its inputs and outputs.
        settings: How it is run.
    """

    cuda: Cuda
    module: api.Module
    runtime: api.Runtime
    engine: api.CudaEngine
    log: BuildLog
    ports: tuple[Port, ...]
    settings: RunSettings

    def do(self, doing: str, function: Callable[..., bool], *arguments: object) -> None:
        """Call a function of the SDK that answers whether it worked.

        Raises:
            RunError: It did not; with what the SDK says.
        """
        since = self.log.position
        try:
            worked = function(*arguments)
        except (RuntimeError, ValueError, TypeError) as error:
            raise self.failure(f"{doing} failed", since, error) from error
        if not worked:
            raise self.failure(f"{doing} failed", since)

    def failure(self, what: str, since: int, error: Exception | None = None) -> RunError:
        """The exception for a refusal of the SDK.

        A CUDA error behind it is raised instead: after most of them the process is lost, and the
        SDK does not say so.

        Args:
            what: What did not work.
            since: Position of the log before it was tried.
            error: What the SDK raised, if it raised.

        Raises:
            RunError: A CUDA error is behind it.
        """
        said = self.log.complaints(since)
        why = "; ".join(said[-3:]) or " ".join(str(error or "it gave no reason").split())
        message = f"{what}: {why}"
        self.cuda.calls.check(f"{what}: the device")
        return RunError(message)

    def infer_shapes(self, context: api.ExecutionContext) -> None:
        """Let a context work out the shapes of its outputs.

        Raises:
            RunError: They cannot be worked out.
        """
        since = self.log.position
        try:
            missing = context.infer_shapes()
        except (RuntimeError, ValueError) as error:
            raise self.failure("the shapes do not fit together", since, error) from error
        if missing:
            msg = f"the shape of {', '.join(missing)} is not settled by the inputs"
            raise RunError(msg)

    def make_context(self) -> api.ExecutionContext:
        """Make a context.

        Raises:
            RunError: There is no memory for it; says how much it takes and how much is free.
        """
        since = self.log.position
        free = self.cuda.free_bytes()
        context = self.engine.create_execution_context()
        if context is None:
            needed = self.context_bytes()
            what = "the engine cannot be made ready to run"
            if needed > free:
                what = f"GPU out of memory: a context needs {needed} bytes, {free} are free"
            raise self.failure(what, since)
        quiet = api.member(self.module.ProfilingVerbosity, "NONE")
        if quiet is not None:
            # Names of layers for a profiler, built on every run, cost time for nothing.
            context.nvtx_verbosity = quiet
        return context

    def context_bytes(self) -> int:
        """Device memory that each context takes; 0 if the version does not tell."""
        if isinstance(self.engine, api.HasDeviceMemorySize):
            return int(self.engine.device_memory_size_v2)
        if isinstance(self.engine, api.HasOldDeviceMemorySize):
            return int(self.engine.device_memory_size)
        return 0
