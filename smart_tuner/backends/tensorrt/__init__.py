"""TensorRT and TensorRT-RTX as compilers with knobs: engines for NVIDIA GPUs."""

from __future__ import annotations

from smart_tuner.backends.tensorrt.backend import TensorRtBackend, TensorRtRtxBackend

__all__ = ["TensorRtBackend", "TensorRtRtxBackend"]
