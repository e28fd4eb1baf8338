"""8-bit regions: which nodes get pairs of QuantizeLinear and DequantizeLinear, and where."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import helper

from smart_tuner.precision.layers import is_anchor
from smart_tuner.precision.support import FP8
from smart_tuner.precision.view import key_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onnx import NodeProto

    from smart_tuner.precision.editor import Editor
    from smart_tuner.precision.pairs import Pairs
    from smart_tuner.precision.ranges import Quantization
    from smart_tuner.precision.support import Scheme
    from smart_tuner.precision.view import GraphView

_ABSORBED = frozenset({"Relu", "Clip"})
"""What compilers fold into the quantization that comes after it."""


def weight_axis(view: GraphView, node: NodeProto) -> int | None:
    """The channels' axis of an anchor's weights; ``None`` for one scale over all of them."""
    weights = view.tensors.get(node.input[1])
    rank = len(weights.shape) if weights is not None and weights.shape is not None else 0
    if node.op_type == "Conv":
        return 0
    if node.op_type == "Gemm":
        return 0 if attribute(node, "transB", 0) else 1
    return 1 if node.op_type == "MatMul" and rank == 2 else None


def can_quantize(view: GraphView, node: NodeProto, scheme: Scheme) -> bool:
    """Whether a node is an anchor with constant weights that the compiler has integers for."""
    return (
        node.op_type in scheme.compute
        and is_anchor(view, node)
        and has_constant_weights(view, node)
        and attribute(node, "alpha", 1.0) == 1
        and attribute(node, "beta", 1.0) == 1
        and not attribute(node, "transA", 0)
    )


def has_constant_weights(view: GraphView, node: NodeProto) -> bool:
    """Whether a node multiplies an activation with weights of the file."""
    source, weights = [*node.input, "", ""][:2]
    return (
        view.is_float(source)
        and source not in view.constants
        and weights in view.constants
        and view.is_float(weights)
    )


def attribute(node: NodeProto, name: str, default: Any) -> Any:
    """An attribute's value."""
    found = next((item for item in node.attribute if item.name == name), None)
    return default if found is None else helper.get_attribute_value(found)


@dataclass(slots=True)
class Quantizer:
    """Writes the nodes of 8-bit regions.

    Attributes:
        editor: Where they go.
        pairs: Writes the pairs.
        values: Value of each node, by its first output; nodes left out are kept.
    """

    editor: Editor
    pairs: Pairs
    values: Mapping[str, str]
    _open: set[str] = field(default_factory=set)

    def lower(self, node: NodeProto, value: str) -> bool:
        """Append a node in 8 bits, if it can be.

        Returns:
            Whether it was appended.
        """
        scheme = self.pairs.scheme
        if can_quantize(self.editor.view, node, scheme):
            return self._lower_anchor(node, value)
        if node.op_type in _ABSORBED and node.input[0] in self._open:
            self._close(node, {}, value)
            return True
        flows = [name for name in node.input if name and not self.editor.is_weight(name)]
        if not flows or not all(self.pairs.is_read_back(name, value) for name in flows):
            return False
        if node.op_type in scheme.layout and self.editor.view.is_float(node.output[0]):
            # The scale of the input is kept, so that the pairs around the node can be dropped.
            self._write(node, {}, value, self.pairs.scale(node.input[0], value))
            return True
        if node.op_type in scheme.follow and len(flows) == len(node.input):
            return self._lower_follower(node, value)
        return False

    def _lower_anchor(self, node: NodeProto, value: str) -> bool:
        source, weights = node.input[0], node.input[1]
        array = self.editor.array(weights)
        is_known = source in self.pairs.ranges or self.pairs.is_read_back(source, value)
        if array is None or not is_known:
            return False
        axis = weight_axis(self.editor.view, node)
        scales = self.pairs.weight_scales(weights, array, value, axis)
        needs_bias = self.pairs.scheme.integer_bias and len(node.input) > 2 and bool(node.input[2])
        bias = self.editor.array(node.input[2]) if needs_bias else None
        if needs_bias and (bias is None or bias.size != scales.size):
            return False
        inputs = {
            0: self.pairs.activation(source, value),
            1: self.pairs.weights(weights, array, value, axis),
        }
        if bias is not None:
            product = np.float64(self.pairs.scale(source, value).scale) * scales
            inputs[2] = self.pairs.bias(node.input[2], bias.reshape(-1), product)
        if node.op_type in self.pairs.scheme.closed and value != FP8:
            self._close(node, inputs, value)
        else:
            self.editor.copy(node, inputs)
        return True

    def _lower_follower(self, node: NodeProto, value: str) -> bool:
        if not self._can_close(node):
            return False
        if node.op_type == "Sum":
            if len(node.input) != 2:
                return False
            # A sum of two has integer kernels under its other name only.
            node = _renamed(node, "Add")
        self._close(node, {}, value)
        return True

    def _can_close(self, node: NodeProto) -> bool:
        return self._absorbing(node) is not None or node.output[0] in self.pairs.ranges

    def _close(self, node: NodeProto, inputs: Mapping[int, str], value: str) -> None:
        """Append a node and quantize what it makes, behind the one that is folded into it."""
        name = node.output[0]
        if node.op_type not in _ABSORBED and self._absorbing(node) is not None:
            self.editor.copy(node, inputs)
            self._open.add(name)
        elif name in self.pairs.ranges:
            self._write(node, inputs, value, self.pairs.scale(name, value))
        else:
            self.editor.copy(node, inputs)

    def _write(
        self, node: NodeProto, inputs: Mapping[int, str], value: str, scale: Quantization
    ) -> None:
        names = [name for name in node.output if name and self.editor.view.is_float(name)]
        wide = {name: self.editor.new_name(name, "wide") for name in names}
        outputs = {place: wide[name] for place, name in enumerate(node.output) if name in wide}
        self.editor.copy(node, inputs, outputs)
        for name in names:
            self.pairs.close(wide[name], name, value, scale)

    def _absorbing(self, node: NodeProto) -> NodeProto | None:
        """The one reader of a node that is folded into the quantization after it."""
        view, name = self.editor.view, node.output[0]
        places = view.readers.get(name, ())
        if len(places) != 1 or name in view.pinned:
            return None
        reader = view.nodes[places[0]]
        is_one = reader.op_type in _ABSORBED and reader.input[0] == name
        is_same = self.values.get(key_of(reader)) == self.values.get(key_of(node))
        return reader if is_one and is_same and key_of(reader) in self.pairs.ranges else None


def _renamed(node: NodeProto, kind: str) -> NodeProto:
    made = type(node)()
    made.CopyFrom(node)
    made.op_type = kind
    return made
