"""Data on standard output, as strict JSON."""

from __future__ import annotations

import json
import math
from typing import Any


def print_json(data: Any) -> None:
    """Print data as JSON; numbers that JSON lacks become ``"inf"``, ``"-inf"`` and ``"nan"``."""
    print(json.dumps(_strict(data), ensure_ascii=False, allow_nan=False, indent=1))


def _strict(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _strict(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
