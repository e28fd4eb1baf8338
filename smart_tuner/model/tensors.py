"""Tensor files: named arrays of every type that ONNX has, kept bit by bit.

A tensor file is an uncompressed zip archive. ``table.json`` names the tensors with their types
and shapes; ``0.npy``, ``1.npy`` ... hold them in that order, so that a name may be any text
(``file`` and ``/a/b`` too, which ``numpy.savez`` cannot take) and numpy alone can read the numbers.
Types that numpy lacks are stored as unsigned integers of their width, text as the UTF-8 bytes of a
JSON list. Nothing is ever pickled. Equal tensors give equal files.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, cast

import numpy as np

from smart_tuner.errors import UserInputError
from smart_tuner.model._npy import DamagedArray, read_member, write_npy
from smart_tuner.model.dtypes import STRING, is_extended, numpy_type, type_name
from smart_tuner.model.files import whole_file

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from smart_tuner.model.dtypes import Array

TABLE = "table.json"
_FORMAT = "smart_tuner tensors"
_VERSION = 1
_MAX_TABLE_BYTES = 1 << 26
_KINDS = "biufc"


@dataclass(frozen=True, slots=True)
class _Entry:
    name: str
    dtype: str
    shape: tuple[int, ...]


def save_tensors(path: Path, tensors: Mapping[str, Array]) -> None:
    """Write a tensor file; it appears whole or not at all.

    Args:
        path: The file; its folder exists.
        tensors: Arrays by name, in the order that is kept. Text may be an object array of
            ``str`` or a numpy ``U`` array.

    Raises:
        UserInputError: An array is of a type that no ONNX tensor has.
        EnvironmentNotFit: The file cannot be written.
    """
    payloads = [_payload(name, array) for name, array in tensors.items()]
    table = {
        "format": _FORMAT,
        "version": _VERSION,
        "tensors": [
            {"name": name, "dtype": type_name(array), "shape": list(array.shape)}
            for name, array in tensors.items()
        ],
    }
    with whole_file(path) as file, zipfile.ZipFile(file, "w", allowZip64=True) as archive:
        # A ZipInfo made from a name alone carries a fixed date: equal tensors, equal files.
        archive.writestr(zipfile.ZipInfo(TABLE), json.dumps(table))
        for number, payload in enumerate(payloads):
            with archive.open(zipfile.ZipInfo(f"{number}.npy"), "w", force_zip64=True) as member:
                write_npy(cast("BinaryIO", member), payload)


def _payload(name: str, array: Array) -> Array:
    """The array in a type that numpy's own format can hold."""
    kind = type_name(array)
    if kind == STRING:
        data = json.dumps([_text(name, item) for item in array.reshape(-1).tolist()])
        return np.frombuffer(data.encode("ascii"), np.uint8)
    if is_extended(kind):
        return np.ascontiguousarray(array).view(_carrier(kind)).reshape(array.shape)
    if array.dtype.kind not in _KINDS:
        msg = f"Tensor {name!r} is of type {array.dtype}, which no ONNX tensor has; convert it."
        raise UserInputError(msg)
    return array


def _text(name: str, item: object) -> str:
    if isinstance(item, bytes):
        return item.decode("utf-8", "surrogateescape")
    if not isinstance(item, str):
        msg = f"Tensor {name!r} holds a Python object ({type(item).__name__}); only text is kept."
        raise UserInputError(msg)
    return item


def _carrier(kind: str) -> np.dtype[np.generic]:
    return np.dtype(f"uint{8 * numpy_type(kind).itemsize}")


def is_tensor_file(path: Path) -> bool:
    """Whether the file is of this form, by its content."""
    try:
        with zipfile.ZipFile(path) as archive:
            return TABLE in archive.namelist()
    except (OSError, zipfile.BadZipFile, ValueError):
        return False


ARCHIVE_ERRORS = (
    *(OSError, EOFError, MemoryError, RuntimeError, ValueError),
    *(zipfile.BadZipFile, zlib.error),
)
"""What reading a hostile archive may raise; a password, for one, is a ``RuntimeError``."""


def unreadable(path: Path, error: BaseException, what: str) -> UserInputError:
    """The one-line message for an archive or array that could not be read."""
    if isinstance(error, OSError):
        return UserInputError(
            f"{path}: cannot be read: {error.strerror or error}; check the path."
        )
    detail = (str(error).splitlines() or [type(error).__name__])[0]
    return UserInputError(f"{path}: not a {what}, or damaged ({detail}); make it again.")


def load_tensors(path: Path) -> dict[str, Array]:
    """Read a tensor file; text comes as object arrays of ``str``, as ONNX Runtime gives it.

    Raises:
        UserInputError: The file is missing, damaged, or of another form or a newer version.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            entries = _read_table(archive)
            return {
                entry.name: _restored(entry, read_member(archive, f"{number}.npy"))
                for number, entry in enumerate(entries)
            }
    except ARCHIVE_ERRORS as error:
        raise unreadable(path, error, "tensor file") from error


def _read_table(archive: zipfile.ZipFile) -> list[_Entry]:
    if TABLE not in archive.namelist():
        msg = f"{TABLE} is missing"
        raise DamagedArray(msg)
    info = archive.getinfo(TABLE)
    if info.file_size > _MAX_TABLE_BYTES or info.compress_type != zipfile.ZIP_STORED:
        msg = f"{TABLE} is too large"
        raise DamagedArray(msg)
    table = json.loads(archive.read(info))
    if not isinstance(table, dict) or table.get("format") != _FORMAT:
        msg = f"{TABLE} is of another form"
        raise DamagedArray(msg)
    if table.get("version") != _VERSION:
        msg = f"version {table.get('version')!r} is not known here"
        raise DamagedArray(msg)
    rows = table.get("tensors")
    entries = [_entry(row) for row in rows] if isinstance(rows, list) else []
    if not isinstance(rows, list) or len({entry.name for entry in entries}) < len(entries):
        msg = f"{TABLE} has no list of tensors with one name each"
        raise DamagedArray(msg)
    return entries


def _entry(row: object) -> _Entry:
    if isinstance(row, dict) and set(row) == {"name", "dtype", "shape"}:
        name, dtype, shape = row["name"], row["dtype"], row["shape"]
        sizes_fit = isinstance(shape, list) and all(
            type(size) is int and size >= 0 for size in shape
        )
        if isinstance(name, str) and isinstance(dtype, str) and sizes_fit:
            return _Entry(name, dtype, tuple(shape))
    msg = f"{TABLE} has an unreadable line"
    raise DamagedArray(msg)


def _restored(entry: _Entry, stored: Array) -> Array:
    """The tensor that a stored array stands for; what it says of itself must fit the table."""
    if entry.dtype == STRING:
        texts = json.loads(stored.tobytes())
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            msg = f"tensor {entry.name!r} is not a list of texts"
            raise DamagedArray(msg)
        flat = np.empty(len(texts), object)
        flat[:] = texts
        return flat.reshape(entry.shape)
    wanted = numpy_type(entry.dtype)
    carrier = _carrier(entry.dtype) if is_extended(entry.dtype) else wanted
    if stored.dtype != carrier or stored.shape != entry.shape:
        msg = f"tensor {entry.name!r} is not what {TABLE} says"
        raise DamagedArray(msg)
    return stored.view(wanted)


def tensors_digest(tensors: Mapping[str, Array]) -> str:
    """SHA-256 over names, types, shapes and bits; the order of the names does not matter."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        array = tensors[name]
        head = json.dumps([name, type_name(array), list(array.shape)])
        digest.update(head.encode("ascii"))
        payload = np.ascontiguousarray(_payload(name, array))
        little = payload.astype(payload.dtype.newbyteorder("<"), copy=False)
        digest.update(little.tobytes())
    return digest.hexdigest()
