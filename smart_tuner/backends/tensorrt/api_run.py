"""What is touched to load, run and refit an engine; see ``api``."""
# ruff: noqa: D102, A002 - spelt as the SDK spells them, described in its manual

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt

    from smart_tuner.backends.tensorrt.api_enums import EnumMember, Shape


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
