"""The platform that a result belongs to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Platform:
    """Results hold for one platform only.

    Attributes:
        device: What runs the engine, e.g. the processor's or GPU's model name.
        driver: Operating system and kernel, or the GPU driver.
        backend_version: E.g. ``onnxruntime 1.32.0``.
        tuner_version: Version of the knob database.
        details: What else may matter (instruction sets, CPU quota, CUDA version ...); shown, and
            compared key by key when a study is resumed.
    """

    device: str
    driver: str
    backend_version: str
    tuner_version: str
    details: Mapping[str, str] = field(default_factory=dict)
