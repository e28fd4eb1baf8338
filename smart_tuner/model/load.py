"""From a model file to a ``ModelSpec``, without its weights."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

import onnx

from smart_tuner.errors import ModelError
from smart_tuner.model._protobuf import DecodeError
from smart_tuner.model.declared import declared_inputs, declared_outputs
from smart_tuner.model.external import external_files
from smart_tuner.model.files import add_file
from smart_tuner.model.graph import (
    doubled_nodes,
    doubled_tensors,
    first_unsorted,
    operator_counts,
    scopes,
    weight_names,
)
from smart_tuner.model.names import listed
from smart_tuner.model.spec import ModelSpec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onnx import ModelProto

MAX_FILE_BYTES = (1 << 31) - 1
"""protobuf's limit for one message; larger models keep their weights in files beside it."""

_IR_WITH_OPSETS = 3


def load_model(path: Path) -> ModelSpec:
    """Read what a model declares; the weights are hashed in small pieces, never loaded.

    Versions that a runtime does not know, and operators that it lacks, are for the backend to
    find; everything that makes the file itself unfit is found here.

    Raises:
        ModelError: The file is missing, is no ONNX model, is incomplete, or has no outputs.
    """
    path = Path(path).absolute()
    _refuse_other_files(path)
    model = _parse(path)
    _refuse_unusable(model, path)
    data_files = external_files(model, path)
    return ModelSpec(
        path=path,
        sha256=_digest(path, data_files),
        size_bytes=sum(file.stat().st_size for file in (path, *data_files)),
        inputs=declared_inputs(model.graph, path),
        outputs=declared_outputs(model.graph, path),
        ir_version=model.ir_version,
        opsets=_opsets(model),
        operators=operator_counts(model),
        notes=_notes(model),
    )


def _refuse_other_files(path: Path) -> None:
    """Say what a file is when its first bytes tell that it is no ONNX model."""
    if not path.exists():
        raise ModelError(f"{path}: no such file; check the path.")
    if path.is_dir():
        raise ModelError(f"{path}: is a folder; give the .onnx file in it.")
    if not path.is_file():
        raise ModelError(f"{path}: is not a regular file; save the model to disk first.")
    size = path.stat().st_size
    if size == 0:
        raise ModelError(f"{path}: the file is empty; export or download the model again.")
    if size > MAX_FILE_BYTES:
        msg = (
            f"{path}: {size} bytes, but an ONNX file cannot exceed 2 GiB; save its weights as "
            "external data beside it."
        )
        raise ModelError(msg)
    try:
        with path.open("rb") as file:
            head = file.read(512)
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror}; check its rights.") from error
    if remedy := _other_kind(head):
        raise ModelError(f"{path}: {remedy}.")


def _other_kind(head: bytes) -> str:
    if head.startswith(b"version https://git-lfs"):
        return "looks like a Git LFS pointer: run `git lfs pull`"
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return "is a zip archive, not an ONNX model; unpack it and give the .onnx file in it"
    if head.startswith(b"\x1f\x8b"):
        return "is gzip-compressed; unpack it and give the .onnx file"
    if head[4:8] == b"ORTM":
        return "is in ONNX Runtime's own ORT format; give the .onnx file that it was made from"
    return ""


def _parse(path: Path) -> ModelProto:
    try:
        # The format is given, else onnx would guess it from the file's name.
        model = onnx.load(path, format="protobuf", load_external_data=False)
    except DecodeError as error:
        raise ModelError(f"{path}: {_not_a_model(path)}.") from error
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror}; check its rights.") from error
    # protobuf takes almost any short text for a message of unknown fields.
    if not model.HasField("graph") or not model.ir_version:
        raise ModelError(f"{path}: {_not_a_model(path)}.")
    if model.ir_version >= _IR_WITH_OPSETS and not model.opset_import:
        raise ModelError(f"{path}: names no operator set, so it was cut short; export it again.")
    return model


def _not_a_model(path: Path) -> str:
    with path.open("rb") as file:
        head = file.read(512)
    if all(32 <= byte < 127 or byte in b"\t\r\n" for byte in head):
        return "is a text file, not an ONNX model; give the .onnx file"
    return "is not an ONNX model, or was cut short; export or download it again"


def _refuse_unusable(model: ModelProto, path: Path) -> None:
    for scope in scopes(model):
        if doubled := doubled_tensors(scope):
            msg = (
                f"{path}: tensor {doubled[0]!r} is given more than once, which ONNX does not "
                "allow; rename one of the two and export the model again."
            )
            raise ModelError(msg)
    graph = model.graph
    if not graph.output:
        msg = (
            f"{path}: the graph has no outputs, and accuracy over zero outputs proves nothing; "
            "declare at least one output."
        )
        raise ModelError(msg)
    given = {*(entry.name for entry in graph.input), *weight_names(graph)}
    given.update(name for node in graph.node for name in node.output)
    if missing := [entry.name for entry in graph.output if entry.name not in given]:
        msg = f"{path}: output {missing[0]!r} is given by no node; remove it from the outputs."
        raise ModelError(msg)


def _opsets(model: ModelProto) -> dict[str, int]:
    versions: dict[str, int] = {}
    for entry in model.opset_import:
        domain = "" if entry.domain == "ai.onnx" else entry.domain
        versions[domain] = max(entry.version, versions.get(domain, 0))
    return versions or {"": 1}


def _digest(path: Path, data_files: Sequence[Path]) -> str:
    """One file alone gives what ``sha256sum`` prints for it."""
    digest = hashlib.sha256()
    add_file(digest, path)
    for file in data_files:
        digest.update(f"\0{file.name}\0{file.stat().st_size}\0".encode("utf-8", "surrogatepass"))
        add_file(digest, file)
    return digest.hexdigest()


def _notes(model: ModelProto) -> tuple[str, ...]:
    notes: list[str] = []
    graph = model.graph
    if listed_weights := sorted({entry.name for entry in graph.input} & {*weight_names(graph)}):
        notes.append(
            f"Weights are listed as inputs ({listed(listed_weights, 4)}): they are not asked for, "
            "but runtimes may not fold them, which costs speed; remove them from the inputs."
        )
    doubled = [name for scope in scopes(model) for name in doubled_nodes(scope)]
    if doubled:
        notes.append(
            f"Node names occur more than once ({listed(doubled, 4)}): some runtimes refuse that; "
            "rename the nodes."
        )
    unsorted = next(filter(None, map(first_unsorted, scopes(model))), None)
    if unsorted is not None:
        notes.append(
            f"Nodes are not sorted ({unsorted!r} is used before it is made): some runtimes and "
            "the ONNX checker refuse that."
        )
    if not graph.node:
        notes.append("The graph has no nodes: there is nothing to tune.")
    names = [entry.name for entry in graph.output]
    if len(set(names)) < len(names):
        notes.append("An output is declared more than once; it is compared once.")
    return tuple(notes)
