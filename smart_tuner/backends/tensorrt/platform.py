"""The platform that engines run on, and the GPU that they are built for."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from smart_tuner.backends.tensorrt import api
from smart_tuner.backends.tensorrt.knobs import knob_database
from smart_tuner.devices.cuda import visible_devices
from smart_tuner.devices.gpu import read_gpu
from smart_tuner.engine.platform import Platform
from smart_tuner.errors import EnvironmentNotFit, UserInputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_tuner.backends.tensorrt.sdk import Sdk
    from smart_tuner.backends.tensorrt.settings import BuildSettings
    from smart_tuner.devices.cuda import CudaDevice

TRY_A_BUILD = "`python -m smart_tuner.backends.tensorrt MODEL.onnx compute_capability=80`"


@dataclass(frozen=True, slots=True)
class Target:
    """The GPU that an engine is built for.

    Attributes:
        name: Its name; empty if it is not at hand.
        compute_capability: E.g. ``90``.
        is_at_hand: Whether it is the GPU of this machine, so that the engine can be looked into.
    """

    name: str
    compute_capability: str
    is_at_hand: bool = True

    def __str__(self) -> str:
        """E.g. ``NVIDIA H200 (compute capability 90)``."""
        of = f"compute capability {self.compute_capability}"
        return f"{self.name} ({of})" if self.name else f"a GPU of {of}"

    def to_json(self) -> dict[str, Any]:
        """Plain data; ``from_json`` reads it back."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Target:
        """Read what ``to_json`` wrote.

        Raises:
            KeyError: A field is missing.
        """
        name, capability = str(data["name"]), str(data["compute_capability"])
        return cls(name, capability, bool(data["is_at_hand"]))


def find_platform(sdk: Sdk) -> Platform:
    """GPU, driver and versions.

    Raises:
        EnvironmentNotFit: There is no GPU, so that no engine can run; says how to build one only.
    """
    device = find_gpu(sdk)
    state = read_gpu(device.bus_id)
    return Platform(
        device=device.name,
        driver=f"NVIDIA {state.driver or 'driver of unknown version'}",
        backend_version=str(sdk),
        tuner_version=knob_database(sdk).tuner_version,
        details={
            "compute_capability": device.compute_capability,
            "cuda_driver": state.cuda_version or "unknown",
            "memory_bytes": str(device.memory_bytes),
            "uuid": device.uuid,
        },
    )


def find_gpu(sdk: Sdk) -> CudaDevice:
    """The GPU that engines run on: the first that CUDA shows.

    Raises:
        EnvironmentNotFit: There is none; says how to try a build only.
    """
    try:
        return visible_devices()[0]
    except EnvironmentNotFit as error:
        hint = ""
        if isinstance(sdk.module, api.HasComputeCapability):
            hint = f" Only building one is possible: {TRY_A_BUILD}."
        reason = str(error).rstrip(".")
        msg = f"{sdk} is installed, but engines cannot run here: {reason}.{hint}"
        raise EnvironmentNotFit(msg) from error


def choose_target(sdk: Sdk, config: api.BuilderConfig, settings: BuildSettings) -> Target:
    """Settle which GPU a build is for, and tell the configuration if it is another one.

    Raises:
        UserInputError: The SDK cannot build for other GPUs, or not for that one.
        EnvironmentNotFit: No other one was asked for, and there is none here.
    """
    wanted = settings.compute_capability
    if not wanted:
        device = find_gpu(sdk)
        return Target(device.name, device.compute_capability)
    module = sdk.module
    if not isinstance(module, api.HasComputeCapability) or not isinstance(
        config, api.HasComputeCapabilities
    ):
        msg = (
            f"compute_capability = {wanted}: {sdk} builds for the GPU at hand only; leave it out "
            "(TensorRT-RTX can: --backend tensorrt-rtx)."
        )
        raise UserInputError(msg)
    found = api.member(module.ComputeCapability, f"SM{wanted}")
    if found is None:
        known = [name[2:] for name in module.ComputeCapability.__members__ if name[2:].isdecimal()]
        msg = f"compute_capability = {wanted}: {sdk} builds for {', '.join(known)}."
        raise UserInputError(msg)
    config.num_compute_capabilities = 1
    if not config.set_compute_capability(found, 0):
        msg = f"compute_capability = {wanted}: {sdk} did not take it."
        raise UserInputError(msg)
    return Target("", wanted, is_at_hand=_is_at_hand(wanted))


def _is_at_hand(capability: str) -> bool:
    try:
        return visible_devices()[0].compute_capability == capability
    except EnvironmentNotFit:
        return False
