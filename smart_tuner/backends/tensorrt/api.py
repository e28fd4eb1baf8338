"""Everything that this backend touches in TensorRT, as types.

All SDK objects here are typed with these protocols, so that the type checker refuses what is not
listed, and a test looks each member up in the real bindings, the oldest and the newest (see
``contract``). Members that only some versions have stand in protocols of their own, named
``Has...``; code reaches them behind ``isinstance(thing, api.Has...)``, never by a version number.
Enums differ most between versions: their members are found with ``member``.
"""
# ruff: noqa: D102, A002, FBT001, N802 - spelt as the SDK spells them, described in its manual
# ruff: noqa: TC001 - handed on, not used

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from smart_tuner.backends.tensorrt.api_enums import EnumMember as EnumMember
from smart_tuner.backends.tensorrt.api_enums import EnumType as EnumType
from smart_tuner.backends.tensorrt.api_enums import Shape as Shape
from smart_tuner.backends.tensorrt.api_enums import member as member
from smart_tuner.backends.tensorrt.api_run import CudaEngine as CudaEngine
from smart_tuner.backends.tensorrt.api_run import EngineInspector as EngineInspector
from smart_tuner.backends.tensorrt.api_run import ExecutionContext as ExecutionContext
from smart_tuner.backends.tensorrt.api_run import HasAliases as HasAliases
from smart_tuner.backends.tensorrt.api_run import HasDeviceMemorySize as HasDeviceMemorySize
from smart_tuner.backends.tensorrt.api_run import HasHostCode as HasHostCode
from smart_tuner.backends.tensorrt.api_run import HasOldDeviceMemorySize as HasOldDeviceMemorySize
from smart_tuner.backends.tensorrt.api_run import HasWeightStreaming as HasWeightStreaming
from smart_tuner.backends.tensorrt.api_run import OnnxParserRefitter as OnnxParserRefitter
from smart_tuner.backends.tensorrt.api_run import OutputAllocator as OutputAllocator
from smart_tuner.backends.tensorrt.api_run import Refitter as Refitter
from smart_tuner.backends.tensorrt.api_run import Runtime as Runtime

if TYPE_CHECKING:
    from collections.abc import Sequence


# ---------------------------------------------------------------- building


class HostMemory(Protocol):
    """Bytes that the SDK owns; readable through the buffer protocol."""

    @property
    def nbytes(self) -> int: ...


class Tensor(Protocol):
    """An input, output or inner tensor of a network."""

    @property
    def name(self) -> str: ...
    @property
    def shape(self) -> Sequence[int]: ...
    @property
    def is_shape_tensor(self) -> bool: ...
    def get_dimension_name(self, index: int) -> str | None: ...

    dtype: EnumMember
    allowed_formats: int


class NetworkDefinition(Protocol):
    """What the parser fills."""

    @property
    def num_inputs(self) -> int: ...
    @property
    def num_outputs(self) -> int: ...
    def get_input(self, index: int) -> Tensor: ...
    def get_output(self, index: int) -> Tensor: ...


class OptimizationProfile(Protocol):
    """Shapes that an engine must run, and the ones that it is tuned for."""

    def set_shape(self, input: str, min: Shape, opt: Shape, max: Shape) -> None: ...
    def set_shape_input(self, input: str, min: Shape, opt: Shape, max: Shape) -> None: ...


class TimingCache(Protocol):
    """Timings of kernels."""

    def serialize(self) -> HostMemory: ...


@runtime_checkable
class HasCacheKeys(Protocol):
    """A timing cache whose keys can be listed (10.13 can, 8.6 cannot)."""

    def queryKeys(self) -> list[object]: ...


class ProgressMonitor(Protocol):
    """Told of a build's phases; may end it (since 9.0 as a class to derive from)."""

    def phase_start(self, phase_name: str, parent_phase: str | None, num_steps: int) -> None: ...
    def step_complete(self, phase_name: str, step: int) -> bool: ...
    def phase_finish(self, phase_name: str) -> None: ...


class BuilderConfig(Protocol):
    """Settings of a build."""

    avg_timing_iterations: int
    builder_optimization_level: int
    hardware_compatibility_level: EnumMember
    max_aux_streams: int
    profiling_verbosity: EnumMember

    def set_flag(self, flag: EnumMember) -> None: ...
    def clear_flag(self, flag: EnumMember) -> None: ...
    def get_flag(self, flag: EnumMember) -> bool: ...
    def set_memory_pool_limit(self, pool: EnumMember, pool_size: int) -> None: ...
    def get_memory_pool_limit(self, pool: EnumMember) -> int: ...
    def set_tactic_sources(self, tactic_sources: int) -> bool: ...
    def get_tactic_sources(self) -> int: ...
    def set_preview_feature(self, feature: EnumMember, enable: bool) -> None: ...
    def get_preview_feature(self, feature: EnumMember) -> bool: ...
    def add_optimization_profile(self, profile: OptimizationProfile) -> int: ...
    def create_timing_cache(self, serialized_timing_cache: bytes) -> TimingCache: ...
    def set_timing_cache(self, cache: TimingCache, ignore_mismatch: bool) -> bool: ...
    def get_timing_cache(self) -> TimingCache | None: ...


@runtime_checkable
class HasBuildRoutes(Protocol):
    """A configuration with the Global Performance Tuner's knobs (since 11.1)."""

    build_route: str

    @property
    def all_build_routes(self) -> str: ...


@runtime_checkable
class HasTiling(Protocol):
    """A configuration that lets layers run tile by tile (since 10.8)."""

    tiling_optimization_level: EnumMember
    l2_limit_for_tiling: int


@runtime_checkable
class HasTacticLimit(Protocol):
    """A configuration that bounds how many kernels are timed for a layer (since 10.6)."""

    max_num_tactics: int


@runtime_checkable
class HasProgressMonitor(Protocol):
    """A configuration that reports progress (since 9.0)."""

    progress_monitor: ProgressMonitor | None


@runtime_checkable
class HasComputeCapabilities(Protocol):
    """A configuration that builds for GPUs that are not at hand (TensorRT-RTX)."""

    num_compute_capabilities: int

    def set_compute_capability(self, compute_capability: EnumMember, index: int) -> bool: ...


class Builder(Protocol):
    """Makes networks, configurations and plans."""

    def create_network(self, flags: int = 0) -> NetworkDefinition: ...
    def create_builder_config(self) -> BuilderConfig: ...
    def create_optimization_profile(self) -> OptimizationProfile: ...
    def build_serialized_network(
        self, network: NetworkDefinition, config: BuilderConfig
    ) -> HostMemory | None: ...


class ParserError(Protocol):
    """One complaint of the ONNX parser."""

    def code(self) -> EnumMember: ...
    def desc(self) -> str: ...
    def node(self) -> int: ...


@runtime_checkable
class HasNodeName(Protocol):
    """A complaint that names its node (since 9.0)."""

    def node_name(self) -> str: ...
    def node_operator(self) -> str: ...


class OnnxParser(Protocol):
    """Reads an ONNX file into a network."""

    @property
    def num_errors(self) -> int: ...
    def parse_from_file(self, model: str) -> bool: ...
    def get_error(self, index: int) -> ParserError: ...


class PluginRegistry(Protocol):
    """Where plugin libraries register themselves."""

    def load_library(self, plugin_path: str) -> object: ...


# ---------------------------------------------------------------- the module

BuilderClass = Callable[[object], Builder]
ParserClass = Callable[[NetworkDefinition, object], OnnxParser]
RuntimeClass = Callable[[object], Runtime]
RefitterClass = Callable[[CudaEngine, object], Refitter]
ParserRefitterClass = Callable[[Refitter, object], OnnxParserRefitter]


class Module(Protocol):
    """The SDK's Python module."""

    __name__: str
    __version__: str

    # Classes to derive from, made at run time: their type is only known then.
    ILogger: type[Any]

    Builder: BuilderClass
    OnnxParser: ParserClass
    Runtime: RuntimeClass
    Refitter: RefitterClass

    BuilderFlag: EnumType
    DataType: EnumType
    HardwareCompatibilityLevel: EnumType
    LayerInformationFormat: EnumType
    MemoryPoolType: EnumType
    NetworkDefinitionCreationFlag: EnumType
    PreviewFeature: EnumType
    ProfilingVerbosity: EnumType
    TacticSource: EnumType
    TensorFormat: EnumType
    TensorIOMode: EnumType
    TensorLocation: EnumType

    def get_plugin_registry(self) -> PluginRegistry: ...
    def init_libnvinfer_plugins(self, logger: object, namespace: str) -> bool: ...


@runtime_checkable
class HasTilingLevels(Protocol):
    """A module with tiling levels (since 10.8)."""

    TilingOptimizationLevel: EnumType


@runtime_checkable
class HasMonitorClass(Protocol):
    """A module with a progress monitor to derive from (since 9.0)."""

    IProgressMonitor: type[Any]


@runtime_checkable
class HasParserRefitter(Protocol):
    """A module that refits from ONNX files (since 10.0)."""

    OnnxParserRefitter: ParserRefitterClass


@runtime_checkable
class HasComputeCapability(Protocol):
    """A module with names of GPU generations (TensorRT-RTX)."""

    ComputeCapability: EnumType


@runtime_checkable
class HasAllocatorClass(Protocol):
    """A module with an output allocator to derive from (since 8.6)."""

    IOutputAllocator: type[Any]
