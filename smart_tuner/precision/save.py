"""Model files with the data that lies beside them."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import onnx

from smart_tuner.model.external import external_files

if TYPE_CHECKING:
    from pathlib import Path

    from onnx import ModelProto

_IN_ONE_FILE_BYTES = 1 << 30
"""Beyond it weights go into a file of their own: protobuf ends at 2 GiB."""

_SMALL_BYTES = 1024


def save_beside(model: ModelProto, source: Path, path: Path) -> tuple[Path, ...]:
    """Write a model, and copies of the data files that it still refers to.

    Copies, since runtimes refuse data behind links.

    Args:
        model: Its external data, if any, lies beside ``source``.
        source: The file that the model came from.
        path: The file to write; its folder exists.

    Returns:
        The files that were written, the model first.
    """
    data = external_files(model, source)
    files = [path]
    for file in data:
        copy = path.parent / file.relative_to(source.parent)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
        files.append(copy)
    if sum(len(weight.raw_data) for weight in model.graph.initializer) <= _IN_ONE_FILE_BYTES:
        path.write_bytes(model.SerializeToString())
        return tuple(files)
    own = f"{path.name}.data"
    (path.parent / own).unlink(missing_ok=True)
    onnx.save_model(
        model, path, save_as_external_data=True, location=own, size_threshold=_SMALL_BYTES
    )
    return (*files, path.parent / own)
