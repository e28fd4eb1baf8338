"""Which element types ONNX Runtime takes, and which pairs its integer kernels are fused from."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

from smart_tuner.devices.cpu import instruction_sets
from smart_tuner.precision.support import BF16, DYNAMIC, FP16, INT8, PrecisionSupport, Scheme

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_SLOW_HALF = "the processor runs it through casts to float32, which is slow"
_FEW_DIGITS = "it is as fast as fp16 with fewer digits, for values beyond 65504"
_NO_INTEGERS = "the CUDA provider has no integer kernels for it, which is slow"
_X86 = frozenset({"x86_64", "amd64", "i686"})
_FULL_WEIGHTS, _SHORT_WEIGHTS = 127, 63

_LAYOUT = frozenset(
    {
        *("DepthToSpace", "Flatten", "MaxPool", "Reshape", "Slice", "SpaceToDepth", "Split"),
        *("Squeeze", "Transpose", "Unsqueeze"),
    }
)
_FOLLOW = frozenset(
    {"Add", "AveragePool", "Concat", "GlobalAveragePool", "LeakyRelu", "Mul", "Sigmoid", "Sum"}
)


def precision_support(base: Mapping[str, str]) -> PrecisionSupport:
    """What the provider that a base names takes.

    Integer kernels of the processor work on unsigned activations and signed weights. Without
    VNNI instructions x86 adds up pairs of products in 16 bits, which saturate: weights get 7
    bits then.
    """
    if base.get("provider") == "cuda":
        values = {FP16: "", BF16: _FEW_DIGITS, INT8: _NO_INTEGERS}
        return PrecisionSupport(values, _scheme(_FULL_WEIGHTS), "onnxruntime on CUDA")
    values = {INT8: "", DYNAMIC: "", FP16: _SLOW_HALF}
    scheme = _scheme(weight_limit(platform.machine(), instruction_sets()))
    return PrecisionSupport(values, scheme, "onnxruntime on this processor")


def weight_limit(machine: str, instructions: Iterable[str]) -> int:
    """Largest magnitude of a weight whose products cannot saturate on a processor."""
    is_exact = machine.lower() not in _X86 or any("vnni" in item for item in instructions)
    return _FULL_WEIGHTS if is_exact else _SHORT_WEIGHTS


def _scheme(weight_limit: int) -> Scheme:
    return Scheme(
        activations="uint8",
        weight_limit=weight_limit,
        compute=frozenset({"Conv", "Gemm", "MatMul"}),
        closed=frozenset({"Conv", "Gemm"}),
        follow=_FOLLOW,
        layout=_LAYOUT,
        integer_bias=True,
        stored_weights=True,
    )
