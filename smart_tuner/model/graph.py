"""Walks over an ONNX graph: every scope, operator and stored tensor in it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from onnx import GraphProto, ModelProto, NodeProto, SparseTensorProto, TensorProto


@dataclass(frozen=True, slots=True)
class Scope:
    """One list of nodes with names of its own: the graph, a subgraph, or a function body.

    Attributes:
        inputs: Names that the scope is given.
        weights: Names of its initializers.
        nodes: Its nodes, in file order.
    """

    inputs: tuple[str, ...]
    weights: tuple[str, ...]
    nodes: Sequence[NodeProto]


def weight_names(graph: GraphProto) -> tuple[str, ...]:
    """Names of a graph's initializers, dense and sparse."""
    dense = (tensor.name for tensor in graph.initializer)
    sparse = (tensor.values.name for tensor in graph.sparse_initializer)
    return (*dense, *sparse)


def subgraphs(nodes: Iterable[NodeProto]) -> Iterator[GraphProto]:
    """Graphs that hang on the attributes of these nodes, one level down."""
    for node in nodes:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield attribute.g
            yield from attribute.graphs


def _graphs_below(nodes: Iterable[NodeProto]) -> Iterator[GraphProto]:
    waiting = list(subgraphs(nodes))
    while waiting:
        graph = waiting.pop()
        yield graph
        waiting.extend(subgraphs(graph.node))


def _graph_scope(graph: GraphProto) -> Scope:
    return Scope(tuple(entry.name for entry in graph.input), weight_names(graph), graph.node)


def scopes(model: ModelProto) -> Iterator[Scope]:
    """The graph first, then every subgraph and every function of the model."""
    yield _graph_scope(model.graph)
    yield from map(_graph_scope, _graphs_below(model.graph.node))
    for function in model.functions:
        yield Scope(tuple(function.input), (), function.node)
        yield from map(_graph_scope, _graphs_below(function.node))


def operator_counts(model: ModelProto) -> dict[str, int]:
    """How often each operator occurs; a function's body counts once, however often it is called."""
    counts: Counter[str] = Counter()
    for scope in scopes(model):
        for node in scope.nodes:
            plain = node.domain in ("", "ai.onnx")
            counts[node.op_type if plain else f"{node.domain}::{node.op_type}"] += 1
    return dict(sorted(counts.items()))


def stored_tensors(model: ModelProto) -> Iterator[TensorProto]:
    """Every tensor that the file stores or refers to: initializers and attributes, anywhere."""
    graphs = [model.graph, *_graphs_below(model.graph.node)]
    for function in model.functions:
        graphs.extend(_graphs_below(function.node))
    for graph in graphs:
        yield from graph.initializer
        yield from _parts(graph.sparse_initializer)
    for scope in scopes(model):
        for node in scope.nodes:
            for attribute in node.attribute:
                yield attribute.t
                yield from attribute.tensors
                yield from _parts([attribute.sparse_tensor, *attribute.sparse_tensors])


def _parts(tensors: Iterable[SparseTensorProto]) -> Iterator[TensorProto]:
    for tensor in tensors:
        yield tensor.values
        yield tensor.indices


def _repeated(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1 and name]


def doubled_tensors(scope: Scope) -> list[str]:
    """Names of tensors that more than one node, input or weight of the scope gives."""
    # Old files list weights as inputs too: that is one tensor, not two.
    inputs = set(scope.inputs)
    repeated_weights = _repeated(scope.weights)
    own_weights = [name for name in scope.weights if name not in inputs]
    made = [name for node in scope.nodes for name in node.output]
    clashes = _repeated([*scope.inputs, *dict.fromkeys(own_weights), *made])
    return list(dict.fromkeys([*repeated_weights, *clashes]))


def doubled_nodes(scope: Scope) -> list[str]:
    """Node names that occur more than once in the scope; nodes without a name do not count."""
    return _repeated(node.name for node in scope.nodes)


def first_unsorted(scope: Scope) -> str | None:
    """The first tensor that a node of the scope uses before another node gives it."""
    given_at = {name: place for place, node in enumerate(scope.nodes) for name in node.output}
    for place, node in enumerate(scope.nodes):
        for name in used_names(node):
            if name and given_at.get(name, -1) > place:
                return name
    return None


def used_names(node: NodeProto) -> Iterator[str]:
    """What a node reads: its inputs, and what its subgraphs take from around it."""
    yield from node.input
    for graph in _graphs_below([node]):
        own = {*weight_names(graph), *(entry.name for entry in graph.input)}
        own.update(name for inner in graph.node for name in inner.output)
        names = [*(name for inner in graph.node for name in inner.input)]
        names.extend(entry.name for entry in graph.output)
        yield from (name for name in names if name not in own)
