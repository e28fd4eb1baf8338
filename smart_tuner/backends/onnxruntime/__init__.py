"""ONNX Runtime as a compiler with knobs: any ONNX model, on any machine or on a GPU."""

from __future__ import annotations

from smart_tuner.backends.onnxruntime.backend import OnnxRuntimeBackend
from smart_tuner.backends.onnxruntime.cuda_backend import OnnxRuntimeCudaBackend

__all__ = ["OnnxRuntimeBackend", "OnnxRuntimeCudaBackend"]
