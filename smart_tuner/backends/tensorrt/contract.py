"""Which class of the SDK stands behind which protocol of ``api``, for the test that looks them up."""

from __future__ import annotations

from dataclasses import dataclass

from smart_tuner.backends.tensorrt import api


@dataclass(frozen=True, slots=True)
class Surface:
    """One class of the SDK.

    Attributes:
        name: Its name in the SDK's module; empty for the module itself.
        always: Protocol with the members that every version has.
        sometimes: Protocols with members that some versions lack; present as a whole or absent.
        is_optional: Whether some versions lack the class itself.
    """

    name: str
    always: type
    sometimes: tuple[type, ...] = ()
    is_optional: bool = False


SURFACES = (
    Surface(
        "",
        api.Module,
        (
            api.HasTilingLevels,
            api.HasMonitorClass,
            api.HasParserRefitter,
            api.HasComputeCapability,
            api.HasAllocatorClass,
        ),
    ),
    Surface("IHostMemory", api.HostMemory),
    Surface("ITensor", api.Tensor),
    Surface("INetworkDefinition", api.NetworkDefinition),
    Surface("IOptimizationProfile", api.OptimizationProfile),
    Surface("ITimingCache", api.TimingCache, (api.HasCacheKeys,)),
    Surface(
        "IBuilderConfig",
        api.BuilderConfig,
        (
            api.HasBuildRoutes,
            api.HasTiling,
            api.HasTacticLimit,
            api.HasProgressMonitor,
            api.HasComputeCapabilities,
        ),
    ),
    Surface("Builder", api.Builder),
    Surface("ParserError", api.ParserError, (api.HasNodeName,)),
    Surface("OnnxParser", api.OnnxParser),
    Surface("IPluginRegistry", api.PluginRegistry),
    Surface("EngineInspector", api.EngineInspector),
    Surface("IExecutionContext", api.ExecutionContext),
    Surface(
        "ICudaEngine",
        api.CudaEngine,
        (
            api.HasWeightStreaming,
            api.HasAliases,
            api.HasDeviceMemorySize,
            api.HasOldDeviceMemorySize,
        ),
    ),
    Surface("Runtime", api.Runtime, (api.HasHostCode,)),
    Surface("Refitter", api.Refitter),
    Surface("IProgressMonitor", api.ProgressMonitor, is_optional=True),
    Surface("IOutputAllocator", api.OutputAllocator, is_optional=True),
    Surface("OnnxParserRefitter", api.OnnxParserRefitter, is_optional=True),
)


def members(protocol: type) -> tuple[str, ...]:
    """Return the names that a protocol asks for, sorted."""
    own = {name for name in vars(protocol) if not name.startswith("_")}
    return tuple(sorted(own | set(protocol.__annotations__)))
