"""Users' tensor files, read and checked against the model."""

from __future__ import annotations

import math
import re
import zipfile
from typing import TYPE_CHECKING

import numpy as np
import onnx
from onnx import numpy_helper

from smart_tuner.errors import UserInputError
from smart_tuner.model._npy import MAGIC, read_member, read_npy
from smart_tuner.model._protobuf import DecodeError
from smart_tuner.model.dtypes import (
    STRING,
    UNKNOWN,
    is_extended,
    is_packed,
    numpy_type,
    stored_bytes,
    type_name,
)
from smart_tuner.model.names import format_name, listed
from smart_tuner.model.shapes import ResolvedShapes, format_shape, resolve_shapes
from smart_tuner.model.tensors import ARCHIVE_ERRORS, is_tensor_file, load_tensors, unreadable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from smart_tuner.model.dtypes import Array
    from smart_tuner.model.sources import Source
    from smart_tuner.model.spec import ModelSpec, TensorSpec


def read_inputs(
    model: ModelSpec, source: Source, given: Mapping[str, tuple[int, ...]]
) -> tuple[dict[str, Array], ResolvedShapes]:
    """Read every model input from a source.

    Args:
        model: What the tensors are for.
        source: Where they come from.
        given: Shapes that the user asked for; the tensors must have them.

    Raises:
        UserInputError: A file is damaged, a tensor is missing, unknown, of another type or shape.
    """
    tensors, dumps = _read(source, model.inputs)
    for name, array in tensors.items():
        if given.get(name, array.shape) != array.shape:
            msg = (
                f"{source.text}: input {name!r} is {format_shape(array.shape)}, but --shapes says "
                f"{format_shape(given[name])}; give equal shapes."
            )
            raise UserInputError(msg)
    try:
        found = {name: array.shape for name, array in tensors.items()}
        resolved = resolve_shapes(model, {**given, **found})
    except UserInputError as error:
        raise UserInputError(f"{source.text}: {error}") from error
    by_name = {spec.name: spec for spec in model.inputs}
    for name, path in dumps.items():
        tensors[name] = _read_dump(path, by_name[name], resolved.shapes[name])
    return _in_order(tensors, model.inputs), resolved


def read_outputs(model: ModelSpec, source: Source, resolved: ResolvedShapes) -> dict[str, Array]:
    """Read trusted outputs, all that the model declares.

    Shapes that the model declares for outputs are used for raw dumps only: exporters often write
    wrong ones, and it is the trusted outputs that count.

    Raises:
        UserInputError: A file is damaged, a tensor is missing, unknown or of another type.
    """
    tensors, dumps = _read(source, model.outputs)
    by_name = {spec.name: spec for spec in model.outputs}
    for name, path in dumps.items():
        declared = by_name[name].shape
        sizes = [resolved.symbols.get(d) if isinstance(d, str) else d for d in declared or ()]
        known = tuple(size for size in sizes if size is not None)
        if declared is None or len(known) < len(sizes):
            msg = (
                f"{path}: the model does not say the shape of output {name!r}; give an .npy file."
            )
            raise UserInputError(msg)
        tensors[name] = _read_dump(path, by_name[name], known)
    return _in_order(tensors, model.outputs)


def _in_order(tensors: Mapping[str, Array], specs: Sequence[TensorSpec]) -> dict[str, Array]:
    return {spec.name: tensors[spec.name] for spec in specs}


def _read(source: Source, specs: Sequence[TensorSpec]) -> tuple[dict[str, Array], dict[str, Path]]:
    """Tensors whose files say their shape, and the raw dumps that do not."""
    tensors: dict[str, Array] = {}
    dumps: dict[str, Path] = {}
    for name, path in source.files:
        if name is None:
            found = _read_named(path, specs)
        elif _is_dump(path):
            found = {}
            dumps[name] = path
        else:
            found = {name: _read_one(path)}
        if twice := [key for key in (found or [name]) if key in tensors]:
            raise UserInputError(f"{source.text}: {twice[0]!r} is given twice; give it once.")
        tensors.update(found)
    by_name = {spec.name: spec for spec in specs}
    names = [*tensors, *dumps]
    if unknown := [name for name in names if name not in by_name]:
        msg = f"{source.text}: {unknown[0]!r} is not of the model, which has {listed(list(by_name))}."
        raise UserInputError(msg)
    if missing := [name for name in by_name if name not in names]:
        msg = f"{source.text}: lacks {listed(missing)}; give all tensors of a pair together."
        raise UserInputError(msg)
    return {n: fitted(array, by_name[n], source.text) for n, array in tensors.items()}, dumps


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(len(MAGIC))


def _is_dump(path: Path) -> bool:
    return path.suffix != ".pb" and path.suffix != ".npz" and _head(path) != MAGIC


def _read_one(path: Path) -> Array:
    """A file that holds one tensor whose name stands in the option."""
    if path.suffix == ".pb":
        return _read_proto(path)[1]
    if path.suffix == ".npz":
        raise UserInputError(f"{path}: an .npz names its tensors itself; give its path alone.")
    try:
        with path.open("rb") as file:
            return read_npy(file, path.stat().st_size)
    except ARCHIVE_ERRORS as error:
        raise unreadable(path, error, "plain .npy array") from error


def _read_named(path: Path, specs: Sequence[TensorSpec]) -> dict[str, Array]:
    """A file that says itself what its tensors are called."""
    if path.suffix == ".pb":
        name, array = _read_proto(path)
        number = re.search(r"_(\d+)\.pb$", path.name)
        if name not in {spec.name for spec in specs} and number and int(number[1]) < len(specs):
            name = specs[int(number[1])].name
        return {name: array}
    if is_tensor_file(path):
        return load_tensors(path)
    if not zipfile.is_zipfile(path):
        example = format_name(specs[0].name) if specs else "name"
        msg = f"{path}: does not say which tensor it is; give it as {example}:{path}."
        raise UserInputError(msg)
    try:
        with zipfile.ZipFile(path) as archive:
            return {
                name.removesuffix(".npy"): read_member(archive, name)
                for name in archive.namelist()
            }
    except ARCHIVE_ERRORS as error:
        raise unreadable(path, error, ".npz of plain arrays") from error


def _read_proto(path: Path) -> tuple[str, Array]:
    proto = onnx.TensorProto()
    try:
        proto.ParseFromString(path.read_bytes())
        if proto.data_location == onnx.TensorProto.EXTERNAL:
            msg = "its data lies in another file"
            raise ValueError(msg)
        array: Array = numpy_helper.to_array(proto)
    except (*ARCHIVE_ERRORS, DecodeError) as error:
        raise unreadable(path, error, "TensorProto") from error
    return proto.name, array


def _read_dump(path: Path, spec: TensorSpec, shape: tuple[int, ...]) -> Array:
    if spec.dtype in (STRING, UNKNOWN) or is_packed(spec.dtype):
        msg = f"{path}: {spec.dtype} has no raw form; give {spec.name!r} as an .npy or .pb file."
        raise UserInputError(msg)
    needed, found = stored_bytes(spec.dtype, math.prod(shape)), path.stat().st_size
    if needed != found:
        msg = (
            f"{path}: {spec.name!r} as {spec.dtype} {format_shape(shape)} needs {needed} bytes, "
            f"{found} found; check its type and shape."
        )
        raise UserInputError(msg)
    data = np.fromfile(path, np.uint8)
    if spec.dtype == "bool":
        truths: Array = data != 0
        return truths.reshape(shape)
    dtype = numpy_type(spec.dtype)
    little: Array = data.view(dtype.newbyteorder("<"))
    array: Array = little.astype(dtype, copy=False)
    return array.reshape(shape)


def fitted(array: Array, spec: TensorSpec, where: str) -> Array:
    """The array as the type that the model wants; nothing is converted that could lose a bit.

    Raises:
        UserInputError: It is of another type.
    """
    if spec.dtype == UNKNOWN or type_name(array) == spec.dtype:
        return _texts(array) if type_name(array) == STRING else array
    if is_extended(spec.dtype) and array.dtype.kind == "V" and array.dtype.names is None:
        wanted = numpy_type(spec.dtype)
        # numpy saves ml_dtypes' arrays as untyped bytes of the same width.
        if array.dtype.itemsize == wanted.itemsize:
            return np.ascontiguousarray(array).view(wanted).reshape(array.shape)
    msg = (
        f"{where}: {spec.name!r} is {type_name(array)}, the model wants {spec.dtype}; convert it "
        "and save it again."
    )
    raise UserInputError(msg)


def _texts(array: Array) -> Array:
    items = [
        item.decode("utf-8", "surrogateescape") if isinstance(item, bytes) else str(item)
        for item in array.reshape(-1).tolist()
    ]
    flat = np.empty(len(items), object)
    flat[:] = items
    return flat.reshape(array.shape)
