"""Inputs made up from a seed, for users who have none at hand."""

from __future__ import annotations

import hashlib
import json
import math
import re
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import psutil

from smart_tuner.errors import UserInputError
from smart_tuner.model.dtypes import STRING, numpy_type
from smart_tuner.model.names import listed, split_items

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from smart_tuner.model.dtypes import Array
    from smart_tuner.model.spec import ModelSpec, TensorSpec

Range = tuple[float, float]
"""Lowest and highest value; whole numbers stay exact, and both ends are drawn then."""

_FORM = "name:low:high"
_WORDS = ("alpha", "beta", "gamma", "delta", "\u00e9t\u00e9", "x", "42", "")
_integer_limits: Any = ml_dtypes.iinfo  # neither carries types
_float_limits: Any = ml_dtypes.finfo
_INTEGERS = re.compile(r"u?int\d+")


def parse_ranges(texts: Sequence[str]) -> dict[str, Range]:
    """Read ``name:low:high`` texts; names are quoted as in ``--shapes``.

    Raises:
        UserInputError: A text is not of that form, the ends are not finite or not in order.
    """
    ranges: dict[str, Range] = {}
    for text in texts:
        for name, value in split_items(text, _FORM, fields=2):
            ends = [_number(end.strip()) for end in value.split(":")]
            if len(ends) != 2 or not all(map(math.isfinite, ends)) or ends[0] > ends[1]:
                msg = f"{value!r} is no range for input {name!r}; write {_FORM}, low first."
                raise UserInputError(msg)
            ranges[name] = (ends[0], ends[1])
    return ranges


def _number(text: str) -> float:
    if re.fullmatch(r"[+-]?[0-9]{1,20}", text):
        return int(text)  # exact beyond 2**53
    try:
        return float(text)
    except ValueError:
        return math.nan


def check_ranges(model: ModelSpec, ranges: Mapping[str, Range]) -> None:
    """Check that each range is for an input that can take it.

    Raises:
        UserInputError: No such input, or its type has no numbers or not these.
    """
    by_name = {spec.name: spec for spec in model.inputs}
    for name, (low, high) in ranges.items():
        if name not in by_name:
            msg = f"The model has no input {name!r}; its inputs: {listed(list(by_name))}."
            raise UserInputError(msg)
        dtype = by_name[name].dtype
        if dtype in (STRING, "bool"):
            msg = f"Input {name!r} is {dtype}, which has no range; leave its range out."
            raise UserInputError(msg)
        smallest, largest = _limits(dtype)
        whole = isinstance(low, int) and isinstance(high, int)
        if low < smallest or high > largest or (_INTEGERS.fullmatch(dtype) and not whole):
            msg = (
                f"Range {low}:{high} does not fit input {name!r}: {dtype} takes "
                f"{smallest} to {largest}."
            )
            raise UserInputError(msg)


def _limits(dtype: str) -> Range:
    if _INTEGERS.fullmatch(dtype):
        integer = _integer_limits(numpy_type(dtype))
        return int(integer.min), int(integer.max)
    parts = {"complex64": "float32", "complex128": "float64"}
    floating = _float_limits(numpy_type(parts.get(dtype, dtype)))
    return float(floating.min), float(floating.max)


def synthetic_inputs(
    model: ModelSpec,
    shapes: Mapping[str, tuple[int, ...]],
    ranges: Mapping[str, Range],
    key: tuple[int, str, str],
) -> dict[str, Array]:
    """Make up one set of inputs.

    Floats are uniform in [0, 1) before they are rounded to their type, integers are 0 or 1 (safe
    as ids and as masks), booleans true or false, text one of a few short words. A range replaces
    this for numbers: floats in [low, high), integers from low to high inclusive.

    Args:
        model: What the inputs are for.
        shapes: Shape of every input.
        ranges: Ranges by input name; others take the default.
        key: Seed, point and pair. The same key gives the same values for an input, whatever
            other inputs there are and in whatever order.

    Raises:
        UserInputError: The inputs would not fit into this machine's free memory.
    """
    _check_memory(model, shapes)
    return {
        spec.name: _values(spec, shapes[spec.name], ranges.get(spec.name), key)
        for spec in model.inputs
    }


def _check_memory(model: ModelSpec, shapes: Mapping[str, tuple[int, ...]]) -> None:
    # Drawn as 8-byte numbers before they are rounded.
    needed = sum(8 * math.prod(shapes[spec.name]) for spec in model.inputs)
    free = psutil.virtual_memory().available
    if needed > free:
        largest = max(model.inputs, key=lambda spec: math.prod(shapes[spec.name]))
        msg = (
            f"Inputs of these shapes need {needed >> 20} MiB, {free >> 20} MiB are free; give "
            f"smaller --shapes, first of all for {largest.name!r}."
        )
        raise UserInputError(msg)


def _values(
    spec: TensorSpec, shape: tuple[int, ...], ends: Range | None, key: tuple[int, str, str]
) -> Array:
    text = json.dumps([*key, spec.name])
    seed = int.from_bytes(hashlib.sha256(text.encode("ascii")).digest(), "little")
    random = np.random.Generator(np.random.PCG64(seed))
    if spec.dtype == STRING:
        words = np.array(_WORDS, object)
        return np.asarray(words[random.integers(len(_WORDS), size=shape)], object).reshape(shape)
    dtype = numpy_type(spec.dtype)
    if spec.dtype == "bool":
        return np.asarray(random.integers(2, size=shape)).astype(dtype)
    if _INTEGERS.fullmatch(spec.dtype):
        low, high = ends or (0, 1)
        wide = np.uint64 if high > np.iinfo(np.int64).max else np.int64
        drawn = random.integers(int(low), int(high), size=shape, dtype=wide, endpoint=True)
        return np.asarray(drawn).astype(dtype)
    low, high = ends or (0.0, 1.0)
    # Two products: high - low itself may be beyond the largest float.
    part = np.asarray(random.random(shape))
    if dtype.kind == "c":
        return np.asarray(low * (1 - part) + high * part + 0j, dtype)
    return (low * (1 - part) + high * part).astype(dtype)
