"""Weights that lie beside the model file: found, complete, and inside the model's folder."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from onnx import TensorProto

from smart_tuner.errors import ModelError
from smart_tuner.model.dtypes import STRING, stored_bytes
from smart_tuner.model.graph import stored_tensors
from smart_tuner.model.onnx_codes import NAME_OF_CODE

if TYPE_CHECKING:
    from onnx import ModelProto


def external_files(model: ModelProto, path: Path) -> tuple[Path, ...]:
    """Check the data files of a model and return them in name order; nothing of them is read.

    Args:
        model: The parsed model.
        path: Absolute path of its file.

    Raises:
        ModelError: A data file is missing, too short, or outside the model's folder.
    """
    needed: dict[str, int] = {}
    for tensor in stored_tensors(model):
        if tensor.data_location == TensorProto.EXTERNAL:
            location, end = _extent(tensor, path)
            needed[location] = max(end, needed.get(location, 0))
    return tuple(_checked(path, location, needed[location]) for location in sorted(needed))


def _extent(tensor: TensorProto, path: Path) -> tuple[str, int]:
    """Where a tensor's data lies, and the byte at which it ends."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    try:
        offset = int(entries.get("offset") or 0)
        length = int(entries.get("length") or 0) or _tensor_bytes(tensor)
    except ValueError:
        offset = length = -1
    if not entries.get("location") or offset < 0 or length < 0:
        msg = f"{path}: weight {tensor.name!r} does not say where its data lies; export it again."
        raise ModelError(msg)
    return entries["location"], offset + length


def _tensor_bytes(tensor: TensorProto) -> int:
    name = NAME_OF_CODE.get(tensor.data_type)
    if name is None or name == STRING:
        return 0
    return stored_bytes(name, math.prod(tensor.dims))


def _checked(path: Path, location: str, needed: int) -> Path:
    data = path.parent / location
    # A model that is itself a link (as download caches make them) has its data beside the target.
    homes = (path.parent.resolve(), path.resolve().parent)
    if Path(location).is_absolute() or not any(data.resolve().is_relative_to(h) for h in homes):
        msg = (
            f"{path}: its data file {location!r} lies outside the model's folder, which is not "
            "followed; put it beside the model and save the model again."
        )
        raise ModelError(msg)
    if not data.is_file():
        msg = f"{path}: its data file {location!r} is missing; put it into {path.parent}."
        raise ModelError(msg)
    found = data.stat().st_size
    if found < needed:
        msg = (
            f"{path}: its data file {location!r} is too short: {needed} bytes needed, {found} "
            "found; copy or download it again."
        )
        raise ModelError(msg)
    return data
