"""A graph as the precision layer looks at it: order, types, constants, who reads what."""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import onnx
from onnx import ModelProto, TensorProto, shape_inference

from smart_tuner.model.graph import (
    first_unsorted,
    scopes,
    subgraphs,
    used_names,
    weight_names,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from onnx import NodeProto, ValueInfoProto

FLOAT = int(TensorProto.FLOAT)

_RANDOM = frozenset(
    {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli"}
)


@dataclass(frozen=True, slots=True)
class Tensor:
    """What is known of a tensor without running anything.

    Attributes:
        kind: ONNX's code of its element type; 0 where it is not known.
        shape: Sizes, ``None`` for those that are open; ``None`` where even the rank is.
    """

    kind: int
    shape: tuple[int | None, ...] | None

    @property
    def size(self) -> int:
        """Elements, open sizes counted as 1; 0 if nothing is known."""
        return 0 if self.shape is None else math.prod(size or 1 for size in self.shape)


@dataclass(frozen=True, slots=True)
class GraphView:
    """The main graph of a model; subgraphs only count as readers of its tensors.

    Attributes:
        model: The model, never changed.
        nodes: Nodes of the main graph so that each comes after what it reads.
        opset: Version of the ONNX operator set.
        tensors: What is known by name; names without an entry are of unknown type.
        readers: Positions in ``nodes`` that read a tensor, by name.
        constants: Names whose content the file settles: weights, and what is computed from them.
        pinned: Names that must stay as they are: outputs, and what subgraphs read.
    """

    model: ModelProto
    nodes: Sequence[NodeProto]
    opset: int
    tensors: Mapping[str, Tensor]
    readers: Mapping[str, Sequence[int]]
    constants: frozenset[str]
    pinned: frozenset[str]

    def is_float(self, name: str) -> bool:
        """Whether a tensor is known to hold 32-bit floating point."""
        found = self.tensors.get(name)
        return found is not None and found.kind == FLOAT


def key_of(node: NodeProto) -> str:
    """What a node is known by: its first output, which every valid graph has once."""
    return next((name for name in node.output if name), "")


def opset_of(model: ModelProto) -> int:
    """Version of the ONNX operator set; 1 where the file names none."""
    return max((e.version for e in model.opset_import if e.domain in ("", "ai.onnx")), default=1)


def view_of(model: ModelProto, *, infer: bool = True) -> GraphView:
    """Look at a model.

    Args:
        model: Parsed without its external data, or with it.
        infer: Infer the types that its file does not tell.
    """
    nodes = in_order(model)
    readers: dict[str, list[int]] = defaultdict(list)
    pinned = {entry.name for entry in model.graph.output}
    for place, node in enumerate(nodes):
        for name in dict.fromkeys(node.input):
            readers[name].append(place)
        if next(subgraphs([node]), None) is not None:
            pinned.update(set(used_names(node)) - set(node.input))
    return GraphView(
        model=model,
        nodes=nodes,
        opset=opset_of(model),
        tensors=_tensors(inferred(_sorted(model, nodes)) if infer else model),
        readers=readers,
        constants=constant_names(model, nodes),
        pinned=frozenset(pinned),
    )


def _sorted(model: ModelProto, nodes: Sequence[NodeProto]) -> ModelProto:
    """The model with its nodes in order, which inference asks for."""
    if first_unsorted(next(scopes(model))) is None:
        return model
    made = ModelProto()
    made.CopyFrom(model)
    del made.graph.node[:]
    made.graph.node.extend(nodes)
    return made


def in_order(model: ModelProto) -> list[NodeProto]:
    """Nodes of the main graph, each after what it reads, otherwise as the file has them."""
    nodes = list(model.graph.node)
    made = {name: place for place, node in enumerate(nodes) for name in node.output if name}
    waits: list[set[int]] = []
    followers: dict[int, list[int]] = defaultdict(list)
    for place, node in enumerate(nodes):
        before = {made[name] for name in used_names(node) if name in made} - {place}
        waits.append(before)
        for other in before:
            followers[other].append(place)
    ready = [place for place, before in enumerate(waits) if not before]
    order: list[NodeProto] = []
    while ready:
        place = heapq.heappop(ready)
        order.append(nodes[place])
        for other in followers[place]:
            waits[other].discard(place)
            if not waits[other]:
                heapq.heappush(ready, other)
    return order if len(order) == len(nodes) else nodes


def constant_names(model: ModelProto, nodes: Sequence[NodeProto]) -> frozenset[str]:
    """Names of weights and of what nodes compute from weights alone."""
    known = set(weight_names(model.graph))
    for node in nodes:
        is_plain = node.domain in ("", "ai.onnx") and node.op_type not in _RANDOM
        if is_plain and next(subgraphs([node]), None) is None:
            reads = [name for name in node.input if name]
            if all(name in known for name in reads):
                known.update(name for name in node.output if name)
    return frozenset(known)


def inferred(model: ModelProto) -> ModelProto:
    """A copy with the types and shapes that follow; the model itself where none can be told."""
    try:
        return shape_inference.infer_shapes(model)
    except (shape_inference.InferenceError, ValueError, RuntimeError):
        return model  # what the file says itself has to do


def _tensors(model: ModelProto) -> dict[str, Tensor]:
    found: dict[str, Tensor] = {}
    graph = model.graph
    for entry in (*graph.value_info, *graph.input, *graph.output):
        found[entry.name] = _declared(entry)
    for weight in graph.initializer:
        found[weight.name] = Tensor(weight.data_type, tuple(weight.dims))
    return found


def _declared(entry: ValueInfoProto) -> Tensor:
    tensor = entry.type.tensor_type
    if not tensor.HasField("shape"):
        return Tensor(tensor.elem_type, None)
    sizes = tuple(
        dim.dim_value if dim.WhichOneof("value") == "dim_value" and dim.dim_value >= 0 else None
        for dim in tensor.shape.dim
    )
    return Tensor(tensor.elem_type, sizes)


def load_bare(path: str) -> ModelProto:
    """Parse a model without what lies beside its file."""
    return onnx.load(path, format="protobuf", load_external_data=False)
