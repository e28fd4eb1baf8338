"""Everything that this backend touches in TensorRT, as types.

All SDK objects here are typed with these protocols, so that the type checker refuses what is not
listed, and a test looks each member up in the real bindings, the oldest and the newest (see
``contract``). Members that only some versions have stand in protocols of their own, named
``Has...``; code reaches them behind ``isinstance(thing, api.Has...)``, never by a version number.
Enums differ most between versions: their members are found with ``member``.
"""
# ruff: noqa: D102, A002, FBT001, N802 - spelt as the SDK spells them, described in its manual

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    import numpy.typing as npt

Shape = tuple[int, ...]


class EnumMember(Protocol):
    """A member of one of the SDK's enums."""

    @property
    def name(self) -> str: ...
    def __int__(self) -> int: ...


class EnumType(Protocol):
    """One of the SDK's enums."""

    @property
    def __members__(self) -> Mapping[str, EnumMember]: ...


def member(enum: EnumType, name: str) -> EnumMember | None:
    """Find a member of an enum, None where this version lacks it."""
    return enum.__members__.get(name)


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
    @property
    def num_layers(self) -> int: ...
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
    """A timing cache whose keys can be listed (since 11.0)."""

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
    engine_capability: EnumMember
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
    def get_compute_capability(self, index: int) -> EnumMember: ...


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


# ---------------------------------------------------------------- running


class EngineInspector(Protocol):
    """Describes the layers of an engine."""

    def get_engine_information(self, format: EnumMember) -> str: ...


class OutputAllocator(Protocol):
    """Memory for outputs whose size only the run finds out; a class to derive from."""

    def reallocate_output(
        self, tensor_name: str, memory: int, size: int, alignment: int
    ) -> int: ...
    def notify_shape(self, tensor_name: str, shape: Sequence[int]) -> None: ...


class ExecutionContext(Protocol):
    """An engine made ready for one stream."""

    nvtx_verbosity: EnumMember

    def set_input_shape(self, name: str, shape: Shape) -> bool: ...
    def get_tensor_shape(self, name: str) -> Sequence[int]: ...
    def get_tensor_strides(self, name: str) -> Sequence[int]: ...
    def set_tensor_address(self, name: str, memory: int) -> bool: ...
    def set_optimization_profile_async(self, profile_index: int, stream_handle: int) -> bool: ...
    def set_output_allocator(self, name: str, output_allocator: OutputAllocator) -> bool: ...
    def infer_shapes(self) -> list[str]: ...
    def execute_async_v3(self, stream_handle: int) -> bool: ...


class CudaEngine(Protocol):
    """A deserialized plan."""

    @property
    def num_io_tensors(self) -> int: ...
    @property
    def num_layers(self) -> int: ...
    @property
    def num_optimization_profiles(self) -> int: ...
    @property
    def refittable(self) -> bool: ...
    def get_tensor_name(self, index: int) -> str: ...
    def get_tensor_mode(self, name: str) -> EnumMember: ...
    def get_tensor_dtype(self, name: str) -> EnumMember: ...
    def get_tensor_shape(self, name: str) -> Sequence[int]: ...
    def get_tensor_location(self, name: str) -> EnumMember: ...
    def get_tensor_vectorized_dim(self, name: str) -> int: ...
    def get_tensor_components_per_element(self, name: str) -> int: ...
    def get_tensor_profile_shape(self, name: str, profile_index: int) -> list[Sequence[int]]: ...
    def create_execution_context(self) -> ExecutionContext | None: ...
    def create_engine_inspector(self) -> EngineInspector: ...


@runtime_checkable
class HasAliases(Protocol):
    """An engine that may write an output over an input (since 10.15)."""

    def get_aliased_input_tensor(self, name: str) -> str | None: ...


@runtime_checkable
class HasDeviceMemorySize(Protocol):
    """An engine that tells what a context needs (since 10.1)."""

    @property
    def device_memory_size_v2(self) -> int: ...


@runtime_checkable
class HasOldDeviceMemorySize(Protocol):
    """An engine that tells what a context needs (before 11.0)."""

    @property
    def device_memory_size(self) -> int: ...


@runtime_checkable
class HasWeightStreaming(Protocol):
    """An engine whose weights may stay on the host (since 10.1)."""

    weight_streaming_budget_v2: int

    @property
    def streamable_weights_size(self) -> int: ...
    def get_weight_streaming_automatic_budget(self) -> int: ...


class Runtime(Protocol):
    """Loads plans."""

    def deserialize_cuda_engine(self, serialized_engine: bytes) -> CudaEngine | None: ...


@runtime_checkable
class HasHostCode(Protocol):
    """A runtime that must be told that a plan may hold host code (version-compatible plans)."""

    engine_host_code_allowed: bool


class Refitter(Protocol):
    """Replaces the weights of an engine."""

    def get_all_weights(self) -> list[str]: ...
    def get_missing_weights(self) -> list[str]: ...
    def set_named_weights(self, name: str, weights: npt.NDArray[np.generic]) -> bool: ...
    def refit_cuda_engine(self) -> bool: ...


class OnnxParserRefitter(Protocol):
    """Takes the weights of a refit from an ONNX file (since 10.0)."""

    def refit_from_file(self, model: str) -> bool: ...


# ---------------------------------------------------------------- the module

# Inside ``Module`` the names of classes mean its members, so their types are named here.
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
    EngineCapability: EnumType
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
