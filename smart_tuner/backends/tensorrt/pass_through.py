"""Handing the settings of a base that are no knobs to a build configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smart_tuner.backends.tensorrt import api
from smart_tuner.errors import NotApplied, UserInputError

if TYPE_CHECKING:
    from smart_tuner.backends.tensorrt.sdk import Sdk
    from smart_tuner.backends.tensorrt.settings import BuildSettings


def apply_pass_through(sdk: Sdk, config: api.BuilderConfig, settings: BuildSettings) -> None:
    """Set flags and compatibility, read each back, and ask for a plan that can be inspected.

    Raises:
        UserInputError: The installed version has no such setting.
        NotApplied: A setting did not take.
    """
    detailed = api.member(sdk.module.ProfilingVerbosity, "DETAILED")
    if detailed is not None:
        config.profiling_verbosity = detailed
    wanted = {
        "refit": ("REFIT", settings.refit),
        "strip_plan": ("STRIP_PLAN", settings.strip_plan),
        "version_compatible": ("VERSION_COMPATIBLE", settings.version_compatible),
        "weight_streaming_budget": ("WEIGHT_STREAMING", settings.weight_streaming_budget != "off"),
    }
    for name, (label, is_on) in wanted.items():
        if is_on:
            _set_flag(sdk, config, name, label)
    if settings.hardware_compatibility != "none":
        _set_compatibility(sdk, config, settings.hardware_compatibility)


def make_literal(sdk: Sdk, config: api.BuilderConfig) -> None:
    """Build as literally as the compiler can: lowest level, no TF32. For references."""
    config.builder_optimization_level = 0
    tf32 = api.member(sdk.module.BuilderFlag, "TF32")
    if tf32 is not None:
        config.clear_flag(tf32)


def _set_flag(sdk: Sdk, config: api.BuilderConfig, name: str, label: str) -> None:
    flag = api.member(sdk.module.BuilderFlag, label)
    if flag is None:
        msg = f"{name}: {sdk} has no such builder flag ({label}); take it out of the base."
        raise UserInputError(msg)
    config.set_flag(flag)
    if not config.get_flag(flag):
        msg = f"{name}: {sdk} did not take the builder flag {label}"
        raise NotApplied(msg)


def _set_compatibility(sdk: Sdk, config: api.BuilderConfig, level: str) -> None:
    found = api.member(sdk.module.HardwareCompatibilityLevel, level.upper())
    if found is None:
        known = ", ".join(map(str.lower, sdk.module.HardwareCompatibilityLevel.__members__))
        msg = f"hardware_compatibility = {level}: {sdk} knows {known}."
        raise UserInputError(msg)
    config.hardware_compatibility_level = found
    if config.hardware_compatibility_level != found:
        msg = f"hardware_compatibility = {level} was not taken by {sdk}"
        raise NotApplied(msg)
