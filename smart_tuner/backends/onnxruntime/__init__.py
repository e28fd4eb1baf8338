"""ONNX Runtime as a compiler with knobs: any ONNX model, on any machine."""

from __future__ import annotations

from smart_tuner.backends.onnxruntime.backend import OnnxRuntimeBackend

__all__ = ["OnnxRuntimeBackend"]
