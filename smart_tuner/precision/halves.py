"""Half precision: nodes that compute in float16 or bfloat16, with casts where the type changes.

Only what is named here is lowered: sums over many elements (statistics of norms, softmax) stay in
32 bits, and so do casts, shape arithmetic, and operators whose outputs are indices.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import onnx
from onnx import TensorProto

from smart_tuner.precision.layers import is_anchor
from smart_tuner.precision.support import BF16, FP16
from smart_tuner.precision.weights import as_half

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onnx import NodeProto

    from smart_tuner.precision.editor import Editor
    from smart_tuner.precision.view import GraphView

_CODES: Mapping[str, int] = {FP16: int(TensorProto.FLOAT16), BF16: int(TensorProto.BFLOAT16)}
_TYPES: Mapping[str, str] = {FP16: "tensor(float16)", BF16: "tensor(bfloat16)"}

_FOLLOW = frozenset(
    {
        *("Abs", "Add", "Clip", "Div", "Elu", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu"),
        *("Max", "Min", "Mul", "Neg", "PRelu", "Relu", "Sigmoid", "Sub", "Sum", "Swish", "Tanh"),
        *(
            "AveragePool",
            "BatchNormalization",
            "MaxPool",
            "Concat",
            "DepthToSpace",
            "Dropout",
            "Expand",
            "Flatten",
        ),
        *("Gather", "Identity", "Pad", "Reshape", "Resize", "Slice", "SpaceToDepth", "Split"),
        *("Squeeze", "Tile", "Transpose", "Unsqueeze", "Where"),
    }
)
"""Operators that go on in half precision if all that they read is in it."""


@dataclass(frozen=True, slots=True)
class Slots:
    """Places of a node whose type changes.

    Attributes:
        inputs: Positions of inputs.
        outputs: Positions of outputs.
    """

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


def half_slots(view: GraphView, node: NodeProto, value: str) -> Slots | None:
    """Where a node's type changes in half precision; ``None`` if it has to stay as it is."""
    if node.domain not in ("", "ai.onnx") or not (
        is_anchor(view, node) or node.op_type in _FOLLOW
    ):
        return None
    found = _schema(node.op_type, view.opset)
    if found is None:
        return None
    kinds = found.kinds_for(_TYPES[value])
    inputs = tuple(
        place
        for place, name in enumerate(node.input)
        if name and view.is_float(name) and found.input_kind(place) in kinds
    )
    outputs = tuple(
        place
        for place, name in enumerate(node.output)
        if name and view.is_float(name) and found.output_kind(place) in kinds
    )
    first = bool(outputs) and outputs[0] == 0
    return Slots(inputs, outputs) if first and inputs else None


def lower_to_half(editor: Editor, node: NodeProto, value: str) -> bool:
    """Append a node in half precision, if it can be and what it reads makes it worth a cast.

    Returns:
        Whether it was appended.
    """
    view = editor.view
    slots = half_slots(view, node, value)
    if slots is None:
        return False
    names = [node.input[place] for place in slots.inputs]
    flows = [name for name in names if not editor.is_weight(name)]
    if not is_anchor(view, node) and not (
        flows and all(editor.has_form(name, value) for name in flows)
    ):
        return False
    inputs = {place: _half(editor, node.input[place], value) for place in slots.inputs}
    outputs = {place: editor.new_name(node.output[place], value) for place in slots.outputs}
    editor.copy(node, inputs, outputs)
    for place, lowered in outputs.items():
        name = node.output[place]
        editor.set_form(name, value, lowered)
        editor.restore(name, lowered)
    return True


def _half(editor: Editor, name: str, value: str) -> str:
    """The form of a tensor in half precision: a weight of that type, or a cast."""

    def make() -> str:
        array = editor.array(name)
        if array is not None:
            return editor.weight(name, value, as_half(array, value))
        lowered = editor.new_name(name, value)
        editor.add("Cast", [name], [lowered], to=_CODES[value])
        return lowered

    return editor.form(name, value, make)


@dataclass(frozen=True, slots=True)
class _Schema:
    """Type variables of an operator."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    is_variadic: bool
    allowed: Mapping[str, frozenset[str]]

    def kinds_for(self, element: str) -> frozenset[str]:
        """The variables that may be of a type."""
        return frozenset(name for name, types in self.allowed.items() if element in types)

    def input_kind(self, place: int) -> str:
        """The variable of an input; the last one repeats where there may be any number."""
        if place < len(self.inputs):
            return self.inputs[place]
        return self.inputs[-1] if self.is_variadic and self.inputs else ""

    def output_kind(self, place: int) -> str:
        """The variable of an output."""
        return self.outputs[min(place, len(self.outputs) - 1)] if self.outputs else ""


@lru_cache(maxsize=512)
def _schema(kind: str, opset: int) -> _Schema | None:
    try:
        schema = onnx.defs.get_schema(kind, opset, "")
    except onnx.defs.SchemaError:
        return None
    variadic = onnx.defs.OpSchema.FormalParameterOption.Variadic
    return _Schema(
        tuple(item.type_str for item in schema.inputs),
        tuple(item.type_str for item in schema.outputs),
        bool(schema.inputs) and schema.inputs[-1].option == variadic,
        {
            item.type_param_str: frozenset(item.allowed_type_strs)
            for item in schema.type_constraints
        },
    )
