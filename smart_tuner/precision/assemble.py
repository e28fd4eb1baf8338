"""A model with other nodes: everything that the nodes do not decide stays as it was."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx import ModelProto

from smart_tuner.model.graph import used_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onnx import NodeProto, TensorProto


def assembled(
    model: ModelProto, nodes: Sequence[NodeProto], weights: Sequence[TensorProto]
) -> ModelProto:
    """Make a model like another, with these nodes in its main graph.

    Weights that nothing reads any more are left out, and none is listed as an input, where
    runtimes could not fold it.

    Args:
        model: What it is like: its other fields are copied.
        nodes: Nodes of the main graph, in order.
        weights: New weights, beside those of ``model``.
    """
    graph = model.graph
    read = {name for node in nodes for name in used_names(node)}
    read.update(entry.name for entry in graph.output)
    stored = {weight.name for weight in graph.initializer}
    made = ModelProto()
    for field, value in model.ListFields():
        if field.name == "graph":
            continue
        if hasattr(value, "extend"):
            getattr(made, field.name).extend(value)
        else:
            setattr(made, field.name, value)
    made.graph.name = graph.name
    made.graph.doc_string = graph.doc_string
    made.graph.node.extend(nodes)
    made.graph.initializer.extend(item for item in graph.initializer if item.name in read)
    made.graph.initializer.extend(item for item in weights if item.name in read)
    made.graph.sparse_initializer.extend(graph.sparse_initializer)
    made.graph.input.extend(entry for entry in graph.input if entry.name not in stored)
    made.graph.output.extend(graph.output)
    known = {name for node in nodes for name in node.output}
    made.graph.value_info.extend(entry for entry in graph.value_info if entry.name in known)
    made.graph.metadata_props.extend(graph.metadata_props)
    made.graph.quantization_annotation.extend(graph.quantization_annotation)
    return made
