"""Ranges of activations, and the scale and zero point that they give."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from smart_tuner.errors import UserInputError
from smart_tuner.model.files import write_json
from smart_tuner.precision.support import FP8

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from smart_tuner.precision.support import Scheme

Ranges = dict[str, tuple[float, float]]
"""Lowest and highest value of each tensor."""

FP8_LARGEST = 448.0
"""The largest float8_e4m3fn."""

_TINY = float(np.finfo(np.float32).tiny)


@dataclass(frozen=True, slots=True)
class Quantization:
    """How a tensor is written in 8 bits: real = scale * (stored - zero).

    Attributes:
        scale: Above 0.
        zero: Zero point; 0 where numbers are signed.
        kind: ``uint8``, ``int8`` or ``fp8``.
    """

    scale: float
    zero: int
    kind: str


def quantization(limits: tuple[float, float], value: str, scheme: Scheme) -> Quantization:
    """Scale and zero point for a range, widened so that 0 is exact.

    Unsigned numbers use the whole range; signed ones are symmetric, as compilers for GPUs ask.
    """
    low, high = min(limits[0], 0.0), max(limits[1], 0.0)
    if value == FP8:
        return Quantization(_usable(max(-low, high) / FP8_LARGEST), 0, FP8)
    if scheme.activations == "int8":
        return Quantization(_usable(max(-low, high) / 127), 0, "int8")
    scale = _usable((high - low) / 255)
    return Quantization(scale, min(255, max(0, round(-low / scale))), "uint8")


def _usable(scale: float) -> float:
    """A tensor that is 0 throughout has no range: any scale writes it."""
    narrow = float(np.float32(scale))
    return narrow if narrow > _TINY and math.isfinite(narrow) else 1.0


def write_ranges(path: Path, ranges: Mapping[str, tuple[float, float]]) -> None:
    """Write ranges that are finite; others are no help."""
    finite = {
        name: [float(low), float(high)]
        for name, (low, high) in ranges.items()
        if math.isfinite(low) and math.isfinite(high)
    }
    write_json(path, finite)


def read_ranges(path: Path) -> Ranges:
    """Read what ``write_ranges`` wrote; nothing if there is no such file.

    Raises:
        UserInputError: The file is damaged.
    """
    if not path.is_file():
        return {}
    try:
        data = json.loads(path.read_bytes())
        return {str(name): (float(pair[0]), float(pair[1])) for name, pair in data.items()}
    except (OSError, ValueError, TypeError, LookupError, AttributeError) as error:
        msg = f"{path} is damaged ({error}): remove its folder, and ranges are measured again."
        raise UserInputError(msg) from None
