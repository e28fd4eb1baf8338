"""What Triton's ONNX Runtime backend takes of a session's settings.

It takes threads, execution mode, graph level, arena, memory pattern, two configuration entries
and the options of the CUDA provider. A tuned session may have more; those are named, since the
gain was measured with them.
"""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any

import onnx

from smart_tuner.errors import UserInputError
from smart_tuner.model.external import external_files

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from smart_tuner.report.export.winner import Winner

_GRAPH = "enable_cuda_graph"
NO_PLACE = "its configuration has no key for it"

_LEVELS = {"disable": 2, "basic": -1, "extended": 1, "all": None}
"""The numbers that Triton gives the levels; it has none for all, which is its default."""

_SWITCHES = {
    "enable_cpu_mem_arena": "enable_mem_arena",
    "enable_mem_pattern": "enable_mem_pattern",
}
_ENTRIES = ("session.use_device_allocator_for_initializers",)
_RUN_ENTRIES = ("memory.enable_memory_arena_shrinkage",)
_ON_BY_DEFAULT = frozenset((*_SWITCHES, "enable_mem_reuse"))


def onnxruntime_config(winner: Winner) -> tuple[list[str], dict[str, str]]:
    """Lines for ``config.pbtxt``, and the settings that have no place there.

    Raises:
        UserInputError: The engine file is not one of ONNX Runtime.
    """
    with _readable(winner):
        settings = _settings(winner)
        found = list(_parameters(settings)), dict(_without(settings))
        return [*map(_parameter, found[0]), *_optimization(settings)], found[1]


def runs_on_gpu(winner: Winner) -> bool:
    """Whether a session runs with the CUDA provider.

    Raises:
        UserInputError: The engine file is not one of ONNX Runtime.
    """
    with _readable(winner):
        return bool(_settings(winner)["provider"] == "cuda")


def _settings(winner: Winner) -> dict[str, Any]:
    document = json.loads(winner.engine.read_text(encoding="utf-8"))
    return dict(document["settings"])


@contextlib.contextmanager
def _readable(winner: Winner) -> Iterator[None]:
    """Say in one line that an engine file is damaged."""
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError) as error:
        msg = f"{winner.engine} is not an ONNX Runtime engine file ({error!r}): ship anew."
        raise UserInputError(msg) from None


def model_files(winner: Winner) -> dict[Path, str]:
    """The model and its external data, each with its name in the repository."""
    path = winner.model
    proto = onnx.load(str(path), load_external_data=False)
    data = external_files(proto, path)
    return {path: "model.onnx", **{file: str(file.relative_to(path.parent)) for file in data}}


def _parameters(settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "intra_op_thread_count", str(settings["intra_threads"])
    yield "inter_op_thread_count", str(settings["inter_threads"])
    yield "execution_mode", "1" if settings["execution_mode"] == "parallel" else "0"
    for name, is_on in settings["switches"]:
        if name in _SWITCHES:
            yield _SWITCHES[name], "1" if is_on else "0"
    for key, value in settings["config_entries"]:
        if key in _ENTRIES:
            yield key, str(value)
    for key, value in settings["run_entries"]:
        if key in _RUN_ENTRIES:
            yield key, str(value)


def _without(settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What a session would have and Triton's has not."""
    names = [
        *(f"optimizer {name} off" for name in settings["disabled_optimizers"]),
        *_unknown(settings["config_entries"], _ENTRIES),
        *_unknown(settings["run_entries"], _RUN_ENTRIES),
        *(
            f"{name}={'on' if is_on else 'off'}"
            for name, is_on in settings["switches"]
            if name not in _SWITCHES and is_on != (name in _ON_BY_DEFAULT)
        ),
        *(f"dimension {symbol}={size}" for symbol, size in settings["free_dimensions"]),
    ]
    level, order = settings["graph_optimization_level"], settings["execution_order"]
    names += [f"graph_optimization_level={level}"] if level not in _LEVELS else []
    names += [f"execution_order={order}"] if order != "default" else []
    yield from ((name, NO_PLACE) for name in names)
    if dict(settings["provider_options"]).get(_GRAPH) == "1":
        yield f"cuda:{_GRAPH}=1", "a graph replays addresses, and those of requests change"
    if library := settings["custom_op_library"]:
        yield (
            f"custom_op_library={library}",
            "name it in `model_operations { op_library_filename }`",
        )


def _unknown(entries: list[list[str]], known: tuple[str, ...]) -> list[str]:
    return [f"{key}={value}" for key, value in entries if key not in known]


def _parameter(item: tuple[str, str]) -> str:
    key, value = item
    return f'parameters {{ key: "{key}" value: {{ string_value: {json.dumps(value)} }} }}'


def _optimization(settings: Mapping[str, Any]) -> Iterator[str]:
    level = _LEVELS.get(settings["graph_optimization_level"])
    graph = f" graph {{ level: {level} }}" if level is not None else ""
    options = " ".join(
        f'parameters {{ key: "{key}" value: {json.dumps(str(value))} }}'
        for key, value in settings["provider_options"]
        if key != _GRAPH
    )
    cuda = (
        f' execution_accelerators {{ gpu_execution_accelerator: [ {{ name: "cuda" {options} }} ] }}'
        if settings["provider"] == "cuda"
        else ""
    )
    if graph or cuda:
        yield f"optimization {{{graph}{cuda} }}"
