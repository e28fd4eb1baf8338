"""The model to tune, as read from its file without loading its weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

Dimension = int | str | None
"""A size, a symbol that must be equal wherever it stands, or unknown."""


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """One model input or output.

    Attributes:
        name: The tensor's name in the model, any text.
        dtype: numpy's or ml_dtypes' name of the element type (``float32``, ``bfloat16``,
            ``float8_e4m3fn``, ``int4``, ``bool``), or ``string``; ``unknown`` for an
            output whose type only the runtime finds out.
        shape: One entry a dimension; ``None`` when even the rank is unknown.
    """

    name: str
    dtype: str
    shape: tuple[Dimension, ...] | None

    @property
    def is_static(self) -> bool:
        """Whether every dimension is a number; zero is a size, not "dynamic"."""
        return self.shape is not None and all(isinstance(size, int) for size in self.shape)


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A model file and what it declares.

    Attributes:
        path: Absolute path of the file; weights may lie beside it.
        sha256: Digest of the file and of every external data file, in name order.
        size_bytes: Size of the file with its external data.
        inputs: Inputs that a caller must feed: initializers are left out.
        outputs: Declared outputs, at least one.
        ir_version: ONNX IR version.
        opsets: Operator set version by domain; the empty text is the ONNX domain.
        operators: How often each operator occurs, subgraphs included; ``domain::Op`` outside
            the ONNX domain.
        notes: Facts that a user should hear (weights listed as inputs, unsorted nodes ...).
    """

    path: Path
    sha256: str
    size_bytes: int
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    ir_version: int
    opsets: Mapping[str, int]
    operators: Mapping[str, int]
    notes: tuple[str, ...] = ()
