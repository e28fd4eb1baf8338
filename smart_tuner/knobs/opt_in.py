"""Knobs of TensorRT that change what the network computes, and are searched only when asked for.

Their own help text says so where it is there; the table below speaks for databases with shortened
or missing help. It names knobs of tuner 2.19.45, whose help was read in full. Knobs that merely
round differently are not listed: the accuracy constraint judges those.
"""

from __future__ import annotations

import re

_CAUSAL = "applies a causal mask that the network may not have"
_GUARANTEE = "correct only if the network has no Slice at its inputs and outputs"
_REQUIRED = "required for functionality: the network may not build or be wrong without it"
_TESTING = "meant for testing the compiler"

# "casual" is how the help of tuner 2.19.45 spells it.
_BY_HELP = (
    (re.compile(r"\b(causal|casual) mask"), _CAUSAL),
    (
        re.compile(r"\b(user|caller) (must|has to|shall)\b|guarantee"),
        "asks a guarantee of its user",
    ),
    (re.compile(r"\brequired for functionality"), _REQUIRED),
    (re.compile(r"\(testing\)|\b(for|only) testing"), _TESTING),
)

_BY_NAME = {
    "mha_fusion:v2:causal_mask": _CAUSAL,
    "mha_fusion:v2:skip_causal": _CAUSAL,
    "slice_elim_copy:ignore_io_check": _GUARANTEE,
    "kgen:lower_gelu": _REQUIRED,
    "kgen:lower_gelu_erf": _REQUIRED,
    "custom_layer_transform:noop": _TESTING,
}


def opt_in_reason(name: str, help_text: str) -> str:
    """Why a TensorRT route knob is off unless asked for; empty when it is searched as usual."""
    lowered = help_text.lower()
    for pattern, reason in _BY_HELP:
        if pattern.search(lowered):
            return f"{reason} (its help: {help_text})"
    return _BY_NAME.get(name, "")
