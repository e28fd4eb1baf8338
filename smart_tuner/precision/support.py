"""What a backend says of the element types that it takes, and how it wants integers written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

KEEP = "keep"
FP16, BF16 = "fp16", "bf16"
INT8, FP8 = "int8", "fp8"
DYNAMIC = "int8_dynamic"

HALVES = (FP16, BF16)
CALIBRATED = (INT8, FP8)
"""Values whose scales come from reference inputs."""

VALUES = (FP16, BF16, INT8, DYNAMIC, FP8)
"""Every value beside ``keep``, in the order in which choices are listed."""

_OPERATORS = ("compute", "closed", "follow", "layout")
_SWITCHES = ("integer_bias", "stored_weights")


@dataclass(frozen=True, slots=True)
class Scheme:
    """How a compiler recognizes what it may compute in integers.

    Attributes:
        activations: Type of quantized activations.
        weight_limit: Largest magnitude of a quantized weight: 127, or 63 where products of 8-bit
            numbers would saturate 16-bit sums.
        compute: Operators with constant weights whose inputs are quantized.
        closed: Those of ``compute`` whose outputs are quantized as well.
        follow: Operators that stay in integers if all that they read is.
        layout: Operators that only move elements, so that their scale is that of their input.
        integer_bias: Whether a bias is written in 32-bit integers.
        stored_weights: Whether the file holds quantized weights; else it holds them as they were,
            with a QuantizeLinear for the compiler to fold.
    """

    activations: Literal["uint8", "int8"] = "int8"
    weight_limit: int = 127
    compute: frozenset[str] = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})
    closed: frozenset[str] = frozenset()
    follow: frozenset[str] = frozenset()
    layout: frozenset[str] = frozenset()
    integer_bias: bool = False
    stored_weights: bool = False

    def to_json(self) -> dict[str, Any]:
        """As plain JSON types."""
        return {
            "activations": self.activations,
            "weight_limit": self.weight_limit,
            **{name: sorted(getattr(self, name)) for name in _OPERATORS},
            **{name: getattr(self, name) for name in _SWITCHES},
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Scheme:
        """Read what ``to_json`` gave.

        Raises:
            KeyError: A field is missing.
            TypeError: A field is of the wrong type.
            ValueError: A value is unknown.
        """
        activations = data["activations"]
        if activations not in ("uint8", "int8"):
            msg = f"activations are {activations!r}"
            raise ValueError(msg)
        operators = {name: frozenset(map(str, data[name])) for name in _OPERATORS}
        return cls(
            activations=activations,
            weight_limit=int(data["weight_limit"]),
            compute=operators["compute"],
            closed=operators["closed"],
            follow=operators["follow"],
            layout=operators["layout"],
            integer_bias=bool(data["integer_bias"]),
            stored_weights=bool(data["stored_weights"]),
        )


@dataclass(frozen=True, slots=True)
class PrecisionSupport:
    """The answer of a backend's ``precisions(base)``.

    Attributes:
        values: Each value that it takes beside ``keep``, with the reason why it is tried only
            when asked for; empty where it is tried as usual.
        scheme: How integers are written.
        where: What takes them, for messages: ``onnxruntime on this processor``.
    """

    values: Mapping[str, str] = field(default_factory=dict)
    scheme: Scheme = field(default_factory=Scheme)
    where: str = "this backend"
