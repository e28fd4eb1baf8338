"""A winner as a model repository of Triton Inference Server."""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING

from smart_tuner.errors import UserInputError
from smart_tuner.report.export.page import Export
from smart_tuner.report.export.tensors import winner_tensors
from smart_tuner.report.export.triton_onnxruntime import (
    model_files,
    onnxruntime_config,
    runs_on_gpu,
)
from smart_tuner.report.export.winner import ONNXRUNTIME, TENSORRT, need_runtime

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from smart_tuner.report.export.tensors import Tensor
    from smart_tuner.report.export.winner import Winner

CONFIG = "config.pbtxt"

_TYPES = {
    **{f"int{bits}": f"INT{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"UINT{bits}" for bits in (8, 16, 32, 64)},
    "float16": "FP16",
    "float32": "FP32",
    "float64": "FP64",
    "bfloat16": "BF16",
    "bool": "BOOL",
    "string": "STRING",
}


def export_triton(winner: Winner, place: Path) -> Export:
    """Write ``<name>/config.pbtxt`` and ``<name>/1/`` with the engine or model.

    The configuration names no model: Triton takes the folder's name, which may be changed.

    Args:
        winner: A study's winner.
        place: The repository folder to fill.

    Raises:
        UserInputError: The study is one that no Triton backend serves.
    """
    need_runtime(winner, (TENSORRT, ONNXRUNTIME), "Triton repositories")
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", winner.original.stem)
    home = place / name / "1"
    home.mkdir(parents=True)
    is_plan = winner.runtime == TENSORRT
    lines, without = ([], {}) if is_plan else onnxruntime_config(winner)
    sources = {winner.engine: "model.plan"} if is_plan else model_files(winner)
    for source, target in sources.items():
        (home / target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, home / target)
    text = "".join(f"{line}\n" for line in (*_config(winner), *lines))
    (place / name / CONFIG).write_text(text, encoding="utf-8")
    first = next(iter(sources.values()))
    about = {
        f"{name}/{CONFIG}": "names, types and sizes",
        f"{name}/1/{first}": "the engine that was measured" if is_plan else "the model itself",
    }
    return Export(
        "Triton", about, _CAUTION.format(runtime=_pinned(winner)), without, _notes(winner)
    )


_CAUTION = (
    "Serve it with a Triton whose backend has {runtime}, on the GPU or processor named above, and "
    "start it with `--disable-auto-complete-config`: Triton batches by itself otherwise, which is "
    "another workload than the one that was measured."
)


def _pinned(winner: Winner) -> str:
    if winner.base.get("version_compatible") == "on":
        return f"{winner.runtime} {winner.version} or a later one of the same major version"
    exactly = "exactly " if winner.is_plan else ""
    return f"{exactly}{winner.runtime} {winner.version}"


def _notes(winner: Winner) -> tuple[str, ...]:
    notes = []
    if plugins := winner.base.get("plugins"):
        notes.append(f"Triton must preload the plugins: `LD_PRELOAD={plugins}`.")
    if winner.base.get("version_compatible") == "on":
        notes.append("Start Triton with `--backend-config=tensorrt,version-compatible=true`.")
    return tuple(notes)


def _config(winner: Winner) -> Iterator[str]:
    """The part of the configuration that both backends share."""
    is_plan = winner.runtime == TENSORRT
    tensors = winner_tensors(winner)
    yield f"# {winner.original.name}, tuned by smart_tuner: {winner.gain}"
    yield f"# measured with {_printable(winner.platform)}"
    if is_plan:
        yield f"# the plan loads in {_pinned(winner)} only"
    if is_plan:
        yield 'platform: "tensorrt_plan"'
    yield f'backend: "{"tensorrt" if is_plan else "onnxruntime"}"'
    yield f'default_model_filename: "{"model.plan" if is_plan else "model.onnx"}"'
    yield "max_batch_size: 0"
    yield from _tensors("input", tensors.inputs)
    yield from _tensors("output", tensors.outputs)
    on_gpu = is_plan or runs_on_gpu(winner)
    yield f"instance_group [ {{ count: 1 kind: {'KIND_GPU' if on_gpu else 'KIND_CPU'} }} ]"
    if is_plan and winner.settings.get("launch") == "graph":
        yield "optimization { cuda { graphs: true } }"


def _tensors(kind: str, tensors: tuple[Tensor, ...]) -> Iterator[str]:
    yield f"{kind} ["
    for index, tensor in enumerate(tensors):
        if tensor.dtype not in _TYPES:
            msg = f"Triton has no type for {kind} {tensor.name!r}, which is {tensor.dtype}."
            raise UserInputError(msg)
        # Triton has no 0-d tensors on the wire.
        shape = tensor.shape or (1,)
        reshape = "" if tensor.shape else " reshape { shape: [ ] }"
        layout = "" if tensor.is_linear else " is_non_linear_format_io: true"
        end = "," if index + 1 < len(tensors) else ""
        sizes = ", ".join(map(str, shape))
        yield (
            f"  {{ name: {_quoted(tensor.name)} data_type: TYPE_{_TYPES[tensor.dtype]} "
            f"dims: [ {sizes} ]{reshape}{layout} }}{end}"
        )
    yield "]"


def _quoted(text: str) -> str:
    """Text as protobuf's text format quotes it; JSON's escapes of ASCII are the same there."""
    return json.dumps(text, ensure_ascii=False)


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text)
