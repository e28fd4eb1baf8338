"""Layers of a graph: each anchor, a node that computes, with what follows it up to the next one."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnx import NodeProto

    from smart_tuner.precision.view import GraphView

ANCHORS = frozenset({"Conv", "ConvTranspose", "MatMul", "Gemm", "Einsum", "Attention"})
"""Operators in which the time goes; all others cost little beside them."""


@dataclass(frozen=True, slots=True)
class Layers:
    """An ordered cut of a graph.

    Attributes:
        anchors: Position of each layer's anchor in the view's nodes.
        members: Positions of each layer's nodes, its anchor first.
        costs: Multiplications of each anchor, open sizes counted as 1.
        crossings: Tensors that are alive between each layer and the next; one fewer than layers.
    """

    anchors: tuple[int, ...]
    members: tuple[tuple[int, ...], ...]
    costs: tuple[float, ...]
    crossings: tuple[int, ...]


def is_anchor(view: GraphView, node: NodeProto) -> bool:
    """Whether a node is one that regions are built around: it computes on 32-bit floats."""
    return (
        node.domain in ("", "ai.onnx")
        and node.op_type in ANCHORS
        and view.is_float(node.output[0])
        and node.output[0] not in view.constants
    )


def layers_of(view: GraphView) -> Layers:
    """Cut a graph into layers; what comes before the first anchor is in none.

    A node belongs to the latest anchor that it depends on, so every layer reads only itself and
    earlier ones.
    """
    layer_of: dict[str, int] = {}
    anchors: list[int] = []
    members: list[list[int]] = []
    for place, node in enumerate(view.nodes):
        if all(name in view.constants for name in node.output if name):
            continue
        if is_anchor(view, node):
            layer = len(anchors)
            anchors.append(place)
            members.append([place])
        else:
            layer = max((layer_of.get(name, -1) for name in node.input), default=-1)
            if layer >= 0:
                members[layer].append(place)
        layer_of.update(dict.fromkeys(filter(None, node.output), layer))
    return Layers(
        anchors=tuple(anchors),
        members=tuple(map(tuple, members)),
        costs=tuple(_cost(view, view.nodes[place]) for place in anchors),
        crossings=_crossings(view, layer_of, len(anchors)),
    )


def _crossings(view: GraphView, layer_of: dict[str, int], count: int) -> tuple[int, ...]:
    last_read: dict[str, int] = defaultdict(lambda: -1)
    for node in view.nodes:
        layer = max((layer_of.get(name, -1) for name in node.output), default=-1)
        for name in node.input:
            last_read[name] = max(last_read[name], layer)
    changes = [0] * (count + 1)
    for name, made in layer_of.items():
        if view.is_float(name) and last_read[name] > made:
            changes[max(made, 0)] += 1
            changes[last_read[name]] -= 1
    alive, found = 0, []
    for change in changes[: max(count - 1, 0)]:
        alive += change
        found.append(alive)
    return tuple(found)


def _cost(view: GraphView, node: NodeProto) -> float:
    """Multiplications of an anchor: elements of its weights, times how often each is used."""
    weights = view.tensors.get(node.input[1]) if len(node.input) > 1 else None
    output = view.tensors.get(node.output[0])
    if weights is None or not weights.size:
        return float(output.size if output else 1) or 1.0
    if output is None or not output.shape:
        return float(weights.size)
    axis = 1 if node.op_type in {"Conv", "ConvTranspose"} else len(output.shape) - 1
    others = [size or 1 for place, size in enumerate(output.shape) if place != axis]
    return float(weights.size) * math.prod(others)
