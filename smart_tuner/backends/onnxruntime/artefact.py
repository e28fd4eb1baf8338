"""The compiled artefact: the optimized graph with its weights, as one digest.

The runtime writes the same optimized graph with different bytes each time: generated names carry
counters, and the order of operators, weights and nodes follows hash tables. So the digest is
taken of what is computed, not of how it is spelt: every value is identified by the operator that
makes it, its attributes and the values that it reads, down to inputs and weight bytes.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto


def artefact_digest(path: Path) -> str:
    """Digest of an optimized model file, equal for equal graphs in any process.

    Raises:
        OSError: The file cannot be read.
        ValueError: The file is not a model.
    """
    import onnx
    from google.protobuf.message import DecodeError

    try:
        model = onnx.load(path, load_external_data=False)
    except DecodeError as error:
        msg = f"{path} is not a model: {error}"
        raise ValueError(msg) from error
    return model_digest(model)


def model_digest(model: ModelProto) -> str:
    """Digest of what a model computes, whatever its values and nodes are called inside."""
    opsets = sorted((entry.domain, entry.version) for entry in model.opset_import)
    functions = sorted(
        _hash("function", function.SerializeToString(deterministic=True))
        for function in model.functions
    )
    return _hash("model", repr(opsets), *functions, _graph(model.graph, {}))


def _graph(graph: GraphProto, outer: Mapping[str, str]) -> str:
    """Digest of a graph whose free names stand in ``outer``."""
    values = dict(outer)
    for position, value in enumerate(graph.input):
        if outer:
            # A subgraph's inputs are called by position, and their types hold generated symbols.
            values[value.name] = _hash("argument", str(position))
        else:
            kind = value.type.SerializeToString(deterministic=True)
            values[value.name] = _hash("input", value.name, kind)
    for tensor in graph.initializer:
        values[tensor.name] = _tensor(tensor)
    for sparse in graph.sparse_initializer:
        data = sparse.SerializeToString(deterministic=True)
        values[sparse.values.name] = _hash("sparse", data)
    nodes = [_node(node, values) for node in graph.node]
    outputs = [_hash(value.name, values.get(value.name, "")) for value in graph.output]
    if outer:
        outputs = [values.get(value.name, "") for value in graph.output]
    return _hash("graph", *sorted(nodes), "outputs", *outputs)


def _node(node: NodeProto, values: dict[str, str]) -> str:
    """Digest of a node; enters its outputs into ``values``."""
    attributes = sorted(_attribute(attribute, values) for attribute in node.attribute)
    inputs = (values.get(name, "") for name in node.input)
    digest = _hash("node", node.domain, node.op_type, *inputs, "attributes", *attributes)
    for position, name in enumerate(node.output):
        values[name] = _hash(digest, str(position))
    return digest


def _attribute(attribute: AttributeProto, values: Mapping[str, str]) -> str:
    graphs = [*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])]
    if graphs:
        # An empty outer scope would make a subgraph look like the main graph.
        scope = values or {"": ""}
        return _hash("attribute", attribute.name, *(_graph(graph, scope) for graph in graphs))
    if attribute.HasField("t"):
        return _hash("attribute", attribute.name, _tensor(attribute.t))
    return _hash("attribute", attribute.SerializeToString(deterministic=True))


def _tensor(tensor: TensorProto) -> str:
    """Digest of type, shape and content; the name is left out, the content is not copied."""
    content: Iterable[Any] = (
        (tensor.raw_data,)
        if tensor.HasField("raw_data")
        else (
            repr([list(entry) for _, entry in _lists(tensor)]),
            repr([(entry.key, entry.value) for entry in tensor.external_data]),
        )
    )
    return _hash("tensor", str(tensor.data_type), repr(list(tensor.dims)), *content)


def _lists(tensor: TensorProto) -> list[tuple[str, Any]]:
    """The typed fields of a tensor that hold elements."""
    return [
        (field.name, content)
        for field, content in tensor.ListFields()
        if field.name.endswith("_data") and field.name != "external_data"
    ]


def _hash(*parts: str | bytes) -> str:
    """Digest of parts that cannot run into each other."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()
