"""Settings of a base and builder knobs as flags of trtexec.

trtexec 11 builds strongly typed networks only: it lost the precision flags, the tactic sources
that call libraries, and the types in I/O formats, and it made CUDA graphs and runs without copies
its default. Flags go by the major version that the winner was tuned with.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from smart_tuner.report.export.io_formats import read_io_formats
from smart_tuner.report.export.shape_flags import shape_flags

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from smart_tuner.report.export.winner import Winner

NEW = 11
"""First major version with strongly typed networks only."""

_PRECISION = ("fp16", "bf16", "int8", "fp8", "int4")
_TILING = {"none": "0", "fast": "1", "moderate": "2", "full": "3"}
_HARDWARE = {"ampere_plus": "ampere+", "same_compute_capability": "sameComputeCapability"}
_PREVIEW = {
    "preview:aliased_plugin_io_10_03": "aliasedPluginIO1003",
    "preview:runtime_activation_resize_10_10": "runtimeActivationResize",
    "preview:profile_sharing_0806": "profileSharing0806",
    "preview:faster_dynamic_shapes_0805": "fasterDynamicShapes0805",
    "preview:disable_external_tactic_sources_for_core_0805": (
        "disableExternalTacticSourcesForCore0805"
    ),
}
_NEW_PREVIEW = ("aliasedPluginIO1003", "runtimeActivationResize")
_NEW_SOURCES = ("EDGE_MASK_CONVOLUTIONS", "JIT_CONVOLUTIONS")

_NUMBERS = {
    "builder:optimization_level": "--builderOptimizationLevel",
    "builder:max_aux_streams": "--maxAuxStreams",
    "builder:avg_timing_iterations": "--avgTiming",
    "builder:max_num_tactics": "--maxTactics",
    "builder:l2_limit_for_tiling": "--l2LimitForTiling",
}
_SWITCHES = {
    "flag:sparse_weights": "--sparsity=enable",
    "flag:direct_io": "--directIO",
    "flag:distributive_independence": "--distributiveIndependence",
    "refit": "--refit",
    "strip_plan": "--stripWeights",
    "version_compatible": "--versionCompatible",
}
_RUN_ONLY = {
    "objective": "trtexec prints latency, compute time and throughput side by side",
    "cold_l2": "trtexec does not clear the L2 cache between runs",
    "states": "trtexec knows no states that pass from run to run",
    "compute_capability": "trtexec builds for the GPU that it runs on",
}
_ELSEWHERE = frozenset(
    (*("min_shapes", "opt_shapes", "max_shapes", "profiles"), "launch", "io", "io_formats")
)
AUTO, NO_FLAG = "auto", "trtexec has no flag for it"


@dataclass(frozen=True, slots=True)
class Flags:
    """Settings as far as trtexec has flags for them.

    Attributes:
        words: Flags, ready to be quoted.
        without: What trtexec has no flag for, and why or what it does instead.
    """

    words: tuple[str, ...]
    without: Mapping[str, str]


def trtexec_flags(winner: Winner, settings: Mapping[str, str]) -> Flags:
    """Translate every setting that is no route knob.

    Args:
        winner: Gives model, shapes and version.
        settings: Base and builder knobs.
    """
    words: list[str] = []
    without: dict[str, str] = {}
    shapes, problem = shape_flags(winner.workload, settings)
    words += shapes
    if problem:
        without["shapes"] = problem
    words += _always(winner, settings)
    for name, value in settings.items():
        found = _flag(winner, name, value)
        if isinstance(found, str):
            without[f"{name}={value}"] = found
        else:
            words += found
    words += _lists(settings, winner.major, without)
    words += _formats(winner, settings, without)
    return Flags(tuple(words), without)


def _always(winner: Winner, settings: Mapping[str, str]) -> Iterator[str]:
    """Where trtexec's own default differs from the compiler's, or from how we measure."""
    if settings.get("builder:avg_timing_iterations", AUTO) == AUTO:
        yield "--avgTiming=1"
    weak = any(settings.get(f"flag:{name}") == "on" for name in _PRECISION)
    if winner.major == NEW - 1 and not weak:
        yield "--stronglyTyped"
    if settings.get("io", "host") == "host" and winner.major >= NEW:
        yield "--includeDataTransfers"
    if settings.get("io") == "device" and winner.major < NEW:
        yield "--noDataTransfers"
    launch = settings.get("launch", AUTO)
    if winner.major >= NEW and launch == "enqueue":
        yield "--noCudaGraph"
    if winner.major < NEW and launch == "graph":
        yield "--useCudaGraph"


def _flag(winner: Winner, name: str, value: str) -> list[str] | str:
    """The flags of one setting, or why there is none."""
    if name in _ELSEWHERE or name.startswith(("tactic_source:", "preview:")):
        return []
    if name in _NUMBERS:
        return [] if value == AUTO else [f"{_NUMBERS[name]}={value}"]
    if name in _SWITCHES:
        return [_SWITCHES[name]] if value == "on" else []
    if name in _VALUED:
        return _VALUED[name](value)
    if name.startswith("flag:"):
        return _builder_flag(winner.major, name.removeprefix("flag:"), value)
    return _RUN_ONLY.get(name, NO_FLAG)


def _builder_flag(major: int, flag: str, value: str) -> list[str] | str:
    if value == "off":
        return ["--noTF32"] if flag == "tf32" else []
    if flag == "tf32":
        return []
    if flag in _PRECISION and major < NEW:
        return [f"--{flag}"]
    if flag == "enable_tactic_heuristic" and major < NEW:
        return ["--heuristic"]
    return NO_FLAG


def _budget(value: str) -> list[str]:
    if value == "off":
        return []
    budget = "-1" if value == AUTO else value
    return ["--allowWeightStreaming", f"--weightStreamingBudget={budget}"]


_VALUED: Mapping[str, Callable[[str], list[str]]] = {
    "builder:tiling_optimization_level": lambda value: [
        f"--tilingOptimizationLevel={_TILING.get(value, value)}"
    ],
    "hardware_compatibility": lambda value: (
        [f"--hardwareCompatibilityLevel={_HARDWARE[value]}"] if value in _HARDWARE else []
    ),
    "weight_streaming_budget": _budget,
    "plugins": lambda value: [
        f"--staticPlugins={path}" for path in value.split(os.pathsep) if path.strip()
    ],
    "builder:workspace_mib": lambda value: (
        [] if value == AUTO else [f"--memPoolSize=workspace:{value}"]
    ),
    "streams": lambda value: [f"--infStreams={value}"] if value != "1" else [],
}


def _lists(settings: Mapping[str, str], major: int, without: dict[str, str]) -> Iterator[str]:
    """Flags that take several settings in one list."""
    sources, previews = [], []
    for name, value in settings.items():
        sign = "+" if value == "on" else "-"
        if name.startswith("tactic_source:"):
            source = name.removeprefix("tactic_source:").upper()
            if major >= NEW and source not in _NEW_SOURCES:
                without[f"{name}={value}"] = NO_FLAG
            else:
                sources.append(f"{sign}{source}")
        elif name.startswith("preview:"):
            feature = _PREVIEW.get(name, "")
            if not feature or (major >= NEW and feature not in _NEW_PREVIEW):
                without[f"{name}={value}"] = NO_FLAG
            else:
                previews.append(f"{sign}{feature}")
    if sources:
        yield f"--tacticSources={','.join(sources)}"
    if previews:
        yield f"--preview={','.join(previews)}"


def _formats(winner: Winner, settings: Mapping[str, str], without: dict[str, str]) -> list[str]:
    """I/O formats, one for each tensor in the model's order; trtexec 11 takes no types."""
    text = settings.get("io_formats", "")
    given = {name: ":".join(form) for name, form in read_io_formats(text).items()}
    spec = winner.workload.model
    known = {tensor.name for tensor in (*spec.inputs, *spec.outputs)}
    if not set(given) <= known or len(given) < len(text.replace(",", " ").split()):
        without[f"io_formats={text}"] = "its names cannot be written for trtexec"
        return []
    words = []
    for option, tensors in (("input", spec.inputs), ("output", spec.outputs)):
        if any(tensor.name in given for tensor in tensors):
            forms = [given.get(tensor.name, f"{_short(tensor.dtype)}:chw") for tensor in tensors]
            if winner.major >= NEW:
                forms = [form.partition(":")[2] for form in forms]
            words.append(f"--{option}IOFormats={','.join(forms)}")
    if words and winner.major >= NEW:
        without["types in io_formats"] = "trtexec 11 takes layouts only, types are the network's"
    return words


def _short(dtype: str) -> str:
    return dtype.replace("bfloat", "bf").replace("float", "fp")
