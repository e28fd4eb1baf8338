"""The npy form of one array inside an archive or a file, read with every size checked first."""

from __future__ import annotations

import math
import zipfile
from typing import TYPE_CHECKING, BinaryIO, cast

import numpy as np
from numpy.lib import format as npy

if TYPE_CHECKING:
    from smart_tuner.model.dtypes import Array

MAGIC = b"\x93NUMPY"
_MAX_HEADER = 1 << 16
# What each way of packing can at most make of one stored byte.
_MAX_RATIO = {zipfile.ZIP_STORED: 1, zipfile.ZIP_DEFLATED: 1032}


class DamagedArray(ValueError):  # noqa: N818
    """The bytes are not a plain array; the message says why, without a final full stop."""


def write_npy(file: BinaryIO, array: Array) -> None:
    """Write an array of one of numpy's own types, little-endian, row by row."""
    flat = np.ascontiguousarray(array).reshape(array.shape)
    npy.write_array(file, flat.astype(flat.dtype.newbyteorder("<"), copy=False), version=(1, 0))


def read_npy(file: BinaryIO, size: int) -> Array:
    """Read one array; nothing is allocated beyond what the file holds.

    Args:
        file: Where the array begins.
        size: Bytes that the file holds from there to its end.

    Raises:
        DamagedArray: The header is absurd, the data is cut short, or it would need unpickling.
    """
    try:
        readers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
        # Version 3 is for structured types only: a KeyError here.
        read_header = readers[npy.read_magic(file)]
        shape, fortran, dtype = read_header(file, max_header_size=_MAX_HEADER)
    except (KeyError, ValueError, TypeError, SyntaxError, MemoryError, RecursionError) as error:
        msg = f"its npy header is damaged ({_first_line(error)})"
        raise DamagedArray(msg) from error
    if dtype.hasobject:
        msg = (
            "it holds Python objects, which would have to be unpickled; save text with astype(str)"
        )
        raise DamagedArray(msg)
    needed = math.prod(shape) * dtype.itemsize
    found = size - file.tell()
    if min((*shape, 0)) < 0 or needed != found:
        msg = f"its shape needs {needed} bytes, {found} found"
        raise DamagedArray(msg)
    return _filled(file, dtype, shape, fortran=fortran)


def _filled(
    file: BinaryIO, dtype: np.dtype[np.generic], shape: tuple[int, ...], *, fortran: bool
) -> Array:
    # An array of bytes first: neither numpy's void types nor ml_dtypes' offer a buffer to fill.
    count = math.prod(shape) * dtype.itemsize
    data = np.empty(count, np.uint8)
    view = data.data
    done = 0
    while done < count and (chunk := file.read(min(count - done, 1 << 22))):
        view[done : done + len(chunk)] = chunk
        done += len(chunk)
    if done < count:
        msg = f"it is cut short: {count} bytes needed, {done} found"
        raise DamagedArray(msg)
    if not count:
        return np.empty(shape, dtype)
    array: Array = data.view(dtype).reshape(shape, order="F" if fortran else "C")
    return array if dtype.isnative else array.astype(dtype.newbyteorder("="))


def read_member(archive: zipfile.ZipFile, name: str) -> Array:
    """Read one npy member of a zip archive.

    Raises:
        DamagedArray: There is no such member, or the array is damaged or absurdly large.
        zipfile.BadZipFile: The checksum does not fit.
    """
    try:
        info = archive.getinfo(name)
    except KeyError as error:
        msg = f"{name} is missing"
        raise DamagedArray(msg) from error
    ratio = _MAX_RATIO.get(info.compress_type)
    if ratio is None or info.file_size > ratio * info.compress_size + _MAX_HEADER:
        msg = f"{name} is packed in a way that numpy does not write"
        raise DamagedArray(msg)
    with archive.open(info) as member:
        array = read_npy(cast("BinaryIO", member), info.file_size)
        member.read()  # the end, where the checksum is compared
    return array


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:120]
