"""A winner's settings for Torch-TensorRT."""

from __future__ import annotations

import pprint
from typing import TYPE_CHECKING

from smart_tuner.report.export.page import Export
from smart_tuner.report.export.shape_flags import profile_shapes
from smart_tuner.report.export.tensors import ANY, winner_tensors
from smart_tuner.report.export.winner import TENSORRT, need_runtime, route_knobs
from smart_tuner.storages.tuning_cache_write import route_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from smart_tuner.report.export.winner import Winner

MODULE = "torch_tensorrt_settings.py"
NO_SETTING = "Torch-TensorRT has no such setting"
AUTO = "auto"

_NUMBERS = {
    "builder:optimization_level": "optimization_level",
    "builder:max_aux_streams": "max_aux_streams",
    "builder:avg_timing_iterations": "num_avg_timing_iters",
    "builder:l2_limit_for_tiling": "l2_limit_for_tiling",
}
_SWITCHES = {
    "flag:sparse_weights": ("sparse_weights", True),
    "version_compatible": ("version_compatible", True),
    "strip_plan": ("strip_engine_weights", True),
    "refit": ("immutable_weights", False),
}
"""Setting, and what it becomes when it is on."""

_SOURCE = '''"""{title}

    import torch_tensorrt
    from torch_tensorrt_settings import INPUTS, SETTINGS, inputs
    compiled = torch_tensorrt.compile(model, ir="dynamo", inputs=inputs(), **SETTINGS)
"""

SETTINGS = {settings}

INPUTS = {inputs}


def inputs():
    """What the model is compiled for, in the order of the ONNX file's inputs."""
    import torch
    import torch_tensorrt

    return [
        torch_tensorrt.Input(**{{**shapes, "dtype": getattr(torch, dtype)}})
        for shapes, dtype in INPUTS.values()
    ]
'''

_CAUTION = (
    "The route was measured on the network that the ONNX file gives. Torch-TensorRT makes a "
    "network of its own, so the gain has to be measured there: routes carry over, gains do not. "
    "`build_route` needs a Torch-TensorRT with the Global Performance Tuner and TensorRT 11.1 or "
    "later."
)


def export_torch_tensorrt(winner: Winner, place: Path) -> Export:
    """Write a module with the compile settings.

    Raises:
        UserInputError: The study is not one of TensorRT.
    """
    need_runtime(winner, (TENSORRT,), "Settings for Torch-TensorRT")
    knobs = route_knobs(winner)
    route = knobs.only(winner.settings)
    others = {name: value for name, value in winner.settings.items() if name not in route}
    without: dict[str, str] = {}
    settings: dict[str, object] = {"require_full_compilation": True}
    if route:
        settings["build_route"] = route_text(route)
    for name, value in others.items():
        found = dict(_setting(name, value))
        if found or _is_default(name, value):
            settings |= found
        elif name not in _SHAPES:
            without[f"{name}={value}"] = NO_SETTING
    text = _SOURCE.format(
        title=f"Settings that smart_tuner found for {_plain(winner.original.name)}.",
        settings=pprint.pformat(settings, sort_dicts=False, width=95),
        inputs=pprint.pformat(_inputs(winner), sort_dicts=False, width=95),
    )
    (place / MODULE).write_text(text, encoding="utf-8")
    about = {MODULE: "`SETTINGS` and `inputs()` for `torch_tensorrt.compile`"}
    return Export("Torch-TensorRT", about, _CAUTION, without, knobs.notes)


_OTHERS = ("hardware_compatibility", "weight_streaming_budget", "builder:workspace_mib")
_SHAPES = ("min_shapes", "opt_shapes", "max_shapes", "profiles")


def _is_default(name: str, value: str) -> bool:
    """Whether a setting asks for what Torch-TensorRT does by itself."""
    return value in {AUTO, "off", "none"} and name in (*_NUMBERS, *_SWITCHES, *_OTHERS)


def _setting(name: str, value: str) -> Iterator[tuple[str, object]]:
    if name in _NUMBERS and value != AUTO:
        yield _NUMBERS[name], int(value)
    elif name in _SWITCHES and value == "on":
        yield _SWITCHES[name]
    elif name == "builder:workspace_mib" and value != AUTO:
        yield "workspace_size", int(value) << 20
    elif name == "builder:tiling_optimization_level":
        yield "tiling_optimization_level", value
    elif name == "flag:tf32":
        yield "disable_tf32", value == "off"
    elif name == "hardware_compatibility" and value == "ampere_plus":
        yield "hardware_compatible", True
    elif name == "weight_streaming_budget" and value != "off":
        yield "enable_weight_streaming", True


def _inputs(winner: Winner) -> Mapping[str, tuple[Mapping[str, object], str]]:
    """Shapes and type by input, as ``torch_tensorrt.Input`` takes them."""
    profile = profile_shapes(winner.workload, winner.base)
    return {
        tensor.name: (
            {f"{end}_shape": profile[end][tensor.name] for end in ("min", "opt", "max")}
            if ANY in tensor.shape
            else {"shape": tensor.shape},
            tensor.dtype,
        )
        for tensor in winner_tensors(winner).inputs
    }


def _plain(text: str) -> str:
    return text.replace("\\", "/").replace('"', "'")
