"""One pass over a graph that lowers each node to the precision of its region."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smart_tuner.precision.assemble import assembled
from smart_tuner.precision.dynamic import can_be_dynamic, lower_dynamic
from smart_tuner.precision.editor import Editor
from smart_tuner.precision.halves import half_slots, lower_to_half
from smart_tuner.precision.integers import Quantizer, can_quantize
from smart_tuner.precision.layers import is_anchor
from smart_tuner.precision.pairs import Pairs
from smart_tuner.precision.support import CALIBRATED, DYNAMIC, HALVES, KEEP
from smart_tuner.precision.view import key_of, view_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from onnx import ModelProto, NodeProto

    from smart_tuner.precision.ranges import Ranges
    from smart_tuner.precision.support import Scheme
    from smart_tuner.precision.view import GraphView


def takes(view: GraphView, node: NodeProto, value: str, scheme: Scheme) -> bool:
    """Whether a node is one that a value speeds up; what merely follows does not count."""
    if value in HALVES:
        return is_anchor(view, node) and half_slots(view, node, value) is not None
    if value in CALIBRATED:
        return can_quantize(view, node, scheme)
    return value == DYNAMIC and can_be_dynamic(view, node)


def lowered_model(
    model: ModelProto, folder: Path, values: Mapping[str, str], scheme: Scheme, ranges: Ranges
) -> ModelProto:
    """Lower the nodes of a prepared model.

    Tensors keep their names in 32-bit form: inputs, outputs and what subgraphs read stay as they
    are.

    Args:
        model: From ``prepared_model``, its types inferred.
        folder: Where its external data lies.
        values: Value by first output of a node; nodes left out are kept.
        scheme: How integers are written.
        ranges: Ranges of activations.
    """
    view = view_of(model, infer=False)
    editor = Editor(view, folder)
    quantizer = Quantizer(editor, Pairs(editor, scheme, ranges), values)
    for node in view.nodes:
        value = values.get(key_of(node), KEEP)
        is_lowered = (
            (value in HALVES and lower_to_half(editor, node, value))
            or (value in CALIBRATED and quantizer.lower(node, value))
            or (value == DYNAMIC and lower_dynamic(editor, node, scheme))
        )
        if not is_lowered:
            editor.copy(node)
    return assembled(model, editor.finish(), editor.weights)
