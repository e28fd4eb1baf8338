"""Enums of the fake SDK: numbered members, as the real bindings have them."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

_PRECISION = ("FP16", "BF16", "INT8", "FP8")
_FLAGS = (
    *("DEBUG", "REFIT", "DISABLE_TIMING_CACHE", "EDITABLE_TIMING_CACHE", "TF32"),
    *("SPARSE_WEIGHTS", "DIRECT_IO", "VERSION_COMPATIBLE", "STRIP_PLAN", "WEIGHT_STREAMING"),
)

# Sources that call libraries of other packages went with the precision flags.
_EXTERNAL = ("CUBLAS", "CUDNN")

FIXED = {
    "DataType": (*("FLOAT", "HALF", "INT8", "INT32", "BOOL", "UINT8", "FP8", "BF16", "INT64"),),
    "HardwareCompatibilityLevel": ("NONE", "AMPERE_PLUS"),
    "LayerInformationFormat": ("ONELINE", "JSON"),
    "MemoryPoolType": ("WORKSPACE", "TACTIC_DRAM"),
    "PreviewFeature": ("ALIASED_PLUGIN_IO_10_03", "RUNTIME_ACTIVATION_RESIZE_10_10"),
    "ProfilingVerbosity": ("LAYER_NAMES_ONLY", "NONE", "DETAILED"),
    "TacticSource": ("EDGE_MASK_CONVOLUTIONS", "JIT_CONVOLUTIONS"),
    "TensorFormat": ("LINEAR", "HWC8"),
    "TensorIOMode": ("NONE", "INPUT", "OUTPUT"),
    "TensorLocation": ("DEVICE", "HOST"),
    "TilingOptimizationLevel": ("NONE", "FAST", "MODERATE", "FULL"),
}


def make_enums(*, has_precision_flags: bool) -> dict[str, Any]:
    """The enums by name.

    Args:
        has_precision_flags: As in versions in which types are no matter of the network alone.
    """
    names = {
        **FIXED,
        "TacticSource": (*(_EXTERNAL if has_precision_flags else ()), *FIXED["TacticSource"]),
        "BuilderFlag": (*_FLAGS, *(_PRECISION if has_precision_flags else ())),
        "NetworkDefinitionCreationFlag": (
            ("EXPLICIT_BATCH",) if has_precision_flags else ("STRONGLY_TYPED",)
        ),
    }
    return {
        name: IntEnum(name, {member: number for number, member in enumerate(members)})
        for name, members in names.items()
    }
