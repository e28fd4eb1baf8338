"""Dynamic 8-bit products: weights in the file, the scale of the input found at each run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from onnx import TensorProto

from smart_tuner.precision.integers import attribute, can_quantize
from smart_tuner.precision.support import Scheme
from smart_tuner.precision.weights import quantized_weights

if TYPE_CHECKING:
    from onnx import NodeProto

    from smart_tuner.precision.editor import Editor
    from smart_tuner.precision.view import GraphView

_PRODUCTS = Scheme(compute=frozenset({"Gemm", "MatMul"}))
"""Convolutions are left out: their dynamic form has no fast kernel with a scale a channel."""


def can_be_dynamic(view: GraphView, node: NodeProto) -> bool:
    """Whether a node is a product with a matrix of constant weights."""
    if not can_quantize(view, node, _PRODUCTS):
        return False
    shape = view.tensors[node.input[1]].shape
    return shape is not None and len(shape) == 2


def lower_dynamic(editor: Editor, node: NodeProto, scheme: Scheme) -> bool:
    """Append a product in its dynamic form, if it can be.

    Returns:
        Whether it was appended.
    """
    weights = editor.array(node.input[1]) if can_be_dynamic(editor.view, node) else None
    if weights is None:
        return False
    source, name, out = node.input[0], node.input[1], node.output[0]
    if node.op_type == "Gemm" and attribute(node, "transB", 0):
        weights = weights.T
    stored, scales = quantized_weights(weights, 1, scheme.weight_limit)

    def quantize(place: int) -> str:
        return editor.form(source, f"dynamic {place}", lambda: _quantized(editor, source)[place])

    matrix = editor.weight(name, "dynamic", stored)
    zero = editor.weight(name, "zero", np.zeros((), np.int8))
    steps = {step: editor.new_name(out, step) for step in ("int32", "float", "scales", "product")}
    inputs = [quantize(0), matrix, quantize(2), zero]
    editor.add("MatMulInteger", inputs, [steps["int32"]])
    editor.add("Cast", [steps["int32"]], [steps["float"]], to=int(TensorProto.FLOAT))
    editor.add("Mul", [quantize(1), editor.weight(name, "scale", scales)], [steps["scales"]])
    has_bias = len(node.input) > 2 and bool(node.input[2])
    product = steps["product"] if has_bias else out
    editor.add("Mul", [steps["float"], steps["scales"]], [product])
    if has_bias:
        editor.add("Add", [product, node.input[2]], [out])
    return True


def _quantized(editor: Editor, source: str) -> tuple[str, str, str]:
    """Quantize an activation at run time; returns what is stored, its scale and its zero."""
    names = [editor.new_name(source, part) for part in ("dynamic", "scale", "zero")]
    editor.add("DynamicQuantizeLinear", [source], names)
    for place, name in enumerate(names):
        editor.set_form(source, f"dynamic {place}", name)
    return names[0], names[1], names[2]
