"""Which element types the installed SDK takes in a network, and how it wants 8 bits written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smart_tuner.backends.tensorrt import api
from smart_tuner.backends.tensorrt.builder_knobs import wants_weak_types
from smart_tuner.precision.support import BF16, FP8, FP16, INT8, PrecisionSupport, Scheme

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_tuner.backends.tensorrt.sdk import Sdk
    from smart_tuner.engine.build import BuildRequest

_BF16_REASON = "it is as fast as fp16 with fewer digits, for values beyond 65504"
_FP8_REASON = "it takes a GPU of compute capability 8.9 or newer"

_SCHEME = Scheme()
"""Symmetric and signed, weights as they were behind a QuantizeLinear: every version reads that."""


def precision_support(sdk: Sdk, base: Mapping[str, str]) -> PrecisionSupport:
    """What regions may be in an SDK.

    Types of half precision stand in the network where networks are strongly typed. In older kinds
    of networks they are mere hints: there the builder's own flags lower the whole network, and
    only pairs of QuantizeLinear and DequantizeLinear are binding.
    """
    kinds = sdk.module.DataType
    is_strong = _is_strong(sdk) and not wants_weak_types(base)
    values = {INT8: ""}
    if is_strong:
        values[FP16] = ""
        if api.member(kinds, "BF16") is not None:
            values[BF16] = _BF16_REASON
        if api.member(kinds, "FP8") is not None:
            values[FP8] = _FP8_REASON
    return PrecisionSupport(values, _SCHEME, f"{sdk}{'' if is_strong else ', weakly typed,'}")


def allow_integers(
    sdk: Sdk, config: api.BuilderConfig, request: BuildRequest, *, is_strongly_typed: bool
) -> None:
    """Let a weakly typed network of lowered regions use integers, as its pairs ask for."""
    flag = api.member(sdk.module.BuilderFlag, "INT8")
    if request.precision is not None and not is_strongly_typed and flag is not None:
        config.set_flag(flag)


def _is_strong(sdk: Sdk) -> bool:
    flags = sdk.module.NetworkDefinitionCreationFlag
    strong, explicit = (api.member(flags, name) for name in ("STRONGLY_TYPED", "EXPLICIT_BATCH"))
    # A version without either flag knows no other kind.
    return strong is not None or explicit is None
