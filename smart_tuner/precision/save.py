"""Model files with the data that lies beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx

if TYPE_CHECKING:
    from pathlib import Path

    from onnx import ModelProto

_IN_ONE_FILE_BYTES = 1 << 30
"""Beyond it weights go into a file of their own: protobuf ends at 2 GiB."""

_SMALL_BYTES = 1024


def save_whole(model: ModelProto, folder: Path, path: Path) -> tuple[Path, ...]:
    """Write a model with all its weights: in its file, or in one beside it.

    Nothing is linked to the data that it came with, since runtimes refuse data behind links.

    Args:
        model: Weights that it keeps elsewhere lie in ``folder``; they are loaded.
        folder: Where they lie.
        path: The file to write; its folder exists.

    Returns:
        The files that were written, the model first.
    """
    onnx.load_external_data_for_model(model, str(folder))
    size = sum(len(weight.raw_data) for weight in model.graph.initializer)
    if size <= _IN_ONE_FILE_BYTES:
        path.write_bytes(model.SerializeToString())
        return (path,)
    data = path.with_name(f"{path.name}.data")
    data.unlink(missing_ok=True)
    onnx.save_model(
        model,
        str(path),
        save_as_external_data=True,
        location=data.name,
        size_threshold=_SMALL_BYTES,
    )
    return path, data
