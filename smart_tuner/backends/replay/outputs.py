"""Outputs that depend on the inputs and on nothing else, and the disturbance of a lossy route."""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING

import numpy as np

from smart_tuner.errors import RunError
from smart_tuner.model.dtypes import STRING, UNKNOWN, numpy_type, type_name

if TYPE_CHECKING:
    from smart_tuner.engine.backend import Tensors
    from smart_tuner.model.dtypes import Array
    from smart_tuner.model.spec import ModelSpec, TensorSpec


def exact_outputs(model: ModelSpec, inputs: Tensors) -> Tensors:
    """Return one array for each output of the model, floats within 1 and 2.

    Sizes that the outputs share with the inputs by symbol are taken from the inputs; sizes that
    nothing tells are 1.

    Raises:
        RunError: An input is missing, unknown, or has another type or shape than the model's.
    """
    sizes = _bind_sizes(model, inputs)
    digest = hashlib.sha256()
    for name in sorted(inputs):
        array = inputs[name]
        content = repr(array.tolist()) if array.dtype.hasobject else array.tobytes()
        data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
        digest.update(repr((name, array.shape, len(data))).encode("utf-8", "surrogatepass"))
        digest.update(data)
    return {
        spec.name: _draw(spec, sizes, digest.digest() + str(position).encode())
        for position, spec in enumerate(model.outputs)
    }


def disturbed(array: Array, loss: float) -> Array:
    """Shift every float by ``loss``, so that ``l1`` and ``linf`` are just that; infinity is NaN.

    Where the type cannot hold the sum, it is rounded so that the loss is never larger. Integers, booleans and text stay as they are: no size of loss is defined on them.
    """
    if loss == 0 or not _is_float(array):
        return array.copy()
    shift = array.dtype.type(loss if math.isfinite(loss) else math.nan)
    moved = np.asarray(np.add(array, shift, dtype=array.dtype))
    if array.dtype.kind == "f":
        difference = moved.astype(np.float64) - array.astype(np.float64)
        moved = np.where(difference > loss, np.nextafter(moved, array), moved)
    return moved


def _is_float(array: Array) -> bool:
    # The types of ml_dtypes are of no kind that numpy knows, and integers among them have no dot.
    if array.dtype.kind == "V":
        return "float" in array.dtype.name
    return array.dtype.kind in "fc"


def _bind_sizes(model: ModelSpec, inputs: Tensors) -> dict[str, int]:
    if set(inputs) != {spec.name for spec in model.inputs}:
        wanted = ", ".join(spec.name for spec in model.inputs)
        msg = f"The simulated engine takes the inputs {wanted}, not {', '.join(inputs)}."
        raise RunError(msg)
    sizes: dict[str, int] = {}
    for spec in model.inputs:
        array = inputs[spec.name]
        if type_name(array) != spec.dtype:
            msg = f"The input {spec.name} is {type_name(array)}, the model takes {spec.dtype}."
            raise RunError(msg)
        if spec.shape is None:
            continue
        fits = len(spec.shape) == array.ndim and all(
            not isinstance(wanted, int) or wanted == size
            for wanted, size in zip(spec.shape, array.shape, strict=True)
        )
        if not fits:
            msg = f"The input {spec.name} has shape {array.shape}, the model takes {spec.shape}."
            raise RunError(msg)
        sizes |= {
            wanted: size
            for wanted, size in zip(spec.shape, array.shape, strict=True)
            if isinstance(wanted, str)
        }
    return sizes


def _draw(spec: TensorSpec, sizes: dict[str, int], seed: bytes) -> Array:
    shape = tuple(
        size if isinstance(size, int) else sizes.get(size or "", 1) for size in spec.shape or ()
    )
    rng = np.random.default_rng(list(hashlib.sha256(seed).digest()))
    if spec.dtype == STRING:
        return np.array(rng.integers(0, 1000, shape).astype(str), dtype=object)
    kind = numpy_type("float32" if spec.dtype == UNKNOWN else spec.dtype)
    if "float" in kind.name or "complex" in kind.name:
        return rng.uniform(1.0, 2.0, shape).astype(kind)
    return rng.integers(0, 2, shape).astype(kind)
