"""Inputs and outputs of a winner, as its reference pairs show them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from smart_tuner.model.dtypes import type_name
from smart_tuner.model.tensors import load_tensors
from smart_tuner.report.export.io_formats import LINEAR, long_name, read_io_formats
from smart_tuner.report.export.shape_flags import profile_shapes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from smart_tuner.model.dtypes import Array
    from smart_tuner.report.export.winner import Winner

ANY = -1


@dataclass(frozen=True, slots=True)
class Tensor:
    """One input or output.

    Attributes:
        name: Its name.
        dtype: numpy's name of its type, as the engine takes or gives it.
        shape: Sizes; -1 where the workload's points differ, or the profile spans a range.
        is_linear: Whether its elements lie one after the other, last dimension first.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    is_linear: bool = True


@dataclass(frozen=True, slots=True)
class Tensors:
    """Inputs and outputs in the model's order."""

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]


def winner_tensors(winner: Winner) -> Tensors:
    """Types and sizes, from the first pair of every workload point.

    Raises:
        UserInputError: A tensor file is missing or was changed.
    """
    model, points = winner.workload.model, winner.workload.points
    pairs = [point.pairs[0] for point in points]
    inputs = _gathered(
        (spec.name for spec in model.inputs), [load_tensors(p.inputs) for p in pairs], winner
    )
    outputs = _gathered(
        (spec.name for spec in model.outputs), [load_tensors(p.outputs) for p in pairs], winner
    )
    profile = profile_shapes(winner.workload, winner.base)
    spans = {
        name: tuple(
            low if low == high else ANY
            for low, high in zip(shape, profile["max"][name], strict=True)
        )
        for name, shape in profile["min"].items()
    }
    widened = tuple(
        replace(tensor, shape=_wider(tensor.shape, spans.get(tensor.name))) for tensor in inputs
    )
    is_wider = any(new != old for new, old in zip(widened, inputs, strict=True))
    if is_wider:
        outputs = tuple(replace(tensor, shape=(ANY,) * len(tensor.shape)) for tensor in outputs)
    return Tensors(widened, outputs)


def _wider(shape: tuple[int, ...], span: tuple[int, ...] | None) -> tuple[int, ...]:
    if span is None:
        return shape
    return tuple(ANY if ANY in sizes else sizes[0] for sizes in zip(shape, span, strict=True))


def _gathered(
    names: Iterable[str], points: list[dict[str, Array]], winner: Winner
) -> tuple[Tensor, ...]:
    found = []
    formats = read_io_formats(winner.base.get("io_formats", ""))
    for name in names:
        arrays = [tensors[name] for tensors in points]
        sizes = zip(*(array.shape for array in arrays), strict=True)
        shape = tuple(size[0] if len(set(size)) == 1 else ANY for size in sizes)
        dtype = _engine_type(type_name(arrays[0]), winner)
        given, layout = formats.get(name, (dtype, LINEAR))
        found.append(Tensor(name, long_name(given), shape, layout == LINEAR))
    return tuple(found)


def _engine_type(dtype: str, winner: Winner) -> str:
    """The type at the engine's border: TensorRT before 10 narrows 64-bit types of ONNX."""
    narrow = {"int64": "int32", "float64": "float32"}
    if winner.is_plan and dtype == "float64":
        return narrow[dtype]
    if winner.runtime == "tensorrt" and winner.major < 10:
        return narrow.get(dtype, dtype)
    return dtype
