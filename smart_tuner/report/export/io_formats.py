"""Types and layouts that a base gives to inputs and outputs: ``x:fp16:chw y:fp32:hwc8``."""

from __future__ import annotations

import re

LINEAR = "chw"


def read_io_formats(text: str) -> dict[str, tuple[str, str]]:
    """Type and layout by tensor; items that are no ``name:type:layout`` are left out."""
    items = (item.rsplit(":", 2) for item in re.split(r"[,\s]+", text) if item)
    return {item[0]: (item[1], item[2]) for item in items if len(item) == 3}


def long_name(short: str) -> str:
    """The whole name of a type that TensorRT's tools write short: ``fp16`` is ``float16``."""
    return re.sub(r"^(b?)f(?:p)?(?=\d)", r"\1float", short)
