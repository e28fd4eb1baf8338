"""Loading a plan: the very file that was built, on the GPU and version that it is for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smart_tuner.backends.tensorrt import api
from smart_tuner.backends.tensorrt.artefact import Facts
from smart_tuner.backends.tensorrt.platform import find_gpu
from smart_tuner.backends.tensorrt.plugins import load_plugins
from smart_tuner.backends.tensorrt.refit import refit_engine
from smart_tuner.backends.tensorrt.settings import read_settings
from smart_tuner.engine.running import engine_bytes
from smart_tuner.errors import RunError

if TYPE_CHECKING:
    from smart_tuner.backends.tensorrt.logger import BuildLog
    from smart_tuner.backends.tensorrt.sdk import Sdk
    from smart_tuner.backends.tensorrt.settings import BuildSettings
    from smart_tuner.devices.cuda import CudaDevice
    from smart_tuner.engine.build import Engine

_AMPERE = 80


def open_engine(sdk: Sdk, engine: Engine, log: BuildLog) -> tuple[api.Runtime, api.CudaEngine]:
    """Load an engine that this study built; a stripped one gets its weights.

    Returns:
        The runtime, which must outlive the engine, and the engine.

    Raises:
        RunError: The file is not the one that was built, is of another GPU or version, or does
            not load.
        EnvironmentNotFit: There is no GPU, or a plugin does not load.
    """
    data = engine_bytes(engine)
    settings, _ = read_settings(engine.request.base)
    facts = Facts.read(engine.path)
    if facts is not None:
        check_fit(sdk, find_gpu(sdk), facts, settings)
    load_plugins(sdk, settings.plugins, log)
    runtime, loaded = deserialize(sdk, data, log, host_code=settings.version_compatible)
    if settings.strip_plan:
        refit_engine(sdk, loaded, engine.request.model, log)
    return runtime, loaded


def deserialize(
    sdk: Sdk, data: bytes, log: BuildLog, *, host_code: bool = False
) -> tuple[api.Runtime, api.CudaEngine]:
    """Make an engine of a plan's bytes.

    Args:
        sdk: The SDK.
        data: The plan.
        log: Hears the reason if it fails.
        host_code: Whether the plan may hold host code, as version-compatible ones do.

    Raises:
        RunError: The SDK does not take the plan.
    """
    since = log.position
    runtime = sdk.module.Runtime(log.native)
    if host_code and isinstance(runtime, api.HasHostCode):
        runtime.engine_host_code_allowed = True
    loaded = runtime.deserialize_cuda_engine(data)
    if loaded is None:
        msg = f"{sdk} does not load the plan: {log.reason(since)}"
        raise RunError(msg)
    return runtime, loaded


def check_fit(sdk: Sdk, device: CudaDevice, facts: Facts, settings: BuildSettings) -> None:
    """Refuse an engine of another version or GPU.

    Raises:
        RunError: Names both.
    """
    if facts.sdk != str(sdk) and not settings.version_compatible:
        msg = f"the engine was built with {facts.sdk}, {sdk} is installed; build it again"
        raise RunError(msg)
    target = facts.target
    is_same_model = not target.name or target.name == device.name
    is_same_capability = target.compute_capability == device.compute_capability
    fits = {
        "none": is_same_model and is_same_capability,
        "same_compute_capability": is_same_capability,
        "ampere_plus": int(device.compute_capability) >= _AMPERE,
    }[settings.hardware_compatibility]
    if not fits:
        here = f"{device.name} (compute capability {device.compute_capability})"
        msg = f"the engine was built for {target}, here is {here}; build it again"
        raise RunError(msg)
