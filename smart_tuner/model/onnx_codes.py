"""ONNX's type codes; apart from ``dtypes``, so that who only reads tensors need not import onnx."""

from __future__ import annotations

from onnx import TensorProto

from smart_tuner.model.dtypes import ONNX_NAMES

# Older onnx packages lack the newest codes; a model that uses one is then refused by number.
NAME_OF_CODE: dict[int, str] = {
    getattr(TensorProto, code): name
    for code, name in ONNX_NAMES.items()
    if hasattr(TensorProto, code)
}
