"""Folding what a convolution would hide behind a pair: batch norms, scales and shifts a channel.

An 8-bit convolution is fused with what stands right behind its output; a norm in between would
leave the output in 32 bits. Compilers fold these themselves, but later than they look for pairs.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from onnx import NodeProto, numpy_helper

from smart_tuner.precision.integers import attribute
from smart_tuner.precision.view import key_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt
    from onnx import TensorProto

    from smart_tuner.precision.view import GraphView
    from smart_tuner.precision.weights import Array, Constants

    Vector = npt.NDArray[np.float64]

_EPSILON = 1e-5
"""The default of BatchNormalization."""


@dataclass(frozen=True, slots=True)
class Folded:
    """A graph with fewer nodes.

    Attributes:
        nodes: The nodes, in order.
        weights: New weights.
    """

    nodes: list[NodeProto]
    weights: list[TensorProto]


def fold_norms(view: GraphView, constants: Constants, region_of: Mapping[str, str]) -> Folded:
    """Fold what scales and shifts a convolution's channels into its weights.

    Only nodes of one region are folded together, so that every other node stays as it was.

    Args:
        view: The graph.
        constants: Its constants.
        region_of: Region by first output of a node; nodes in none are left out.
    """
    uses = Counter(name for node in view.nodes for name in node.input)
    gone: set[int] = set()
    made: dict[int, NodeProto] = {}
    weights: list[TensorProto] = []
    for place, node in enumerate(view.nodes):
        if not _is_convolution(view, node) or key_of(node) not in region_of:
            continue
        chain = _chain(view, place, constants, region_of, uses)
        if chain:
            made[place], new = _folded(node, chain, constants)
            weights.extend(new)
            gone.update(step.place for step in chain)
    nodes = [made.get(place, node) for place, node in enumerate(view.nodes) if place not in gone]
    return Folded(nodes, weights)


@dataclass(frozen=True, slots=True)
class _Step:
    """One folded node: out = in * scale + shift, channel by channel."""

    place: int
    output: str
    scale: Vector
    shift: Vector


def _is_convolution(view: GraphView, node: NodeProto) -> bool:
    return (
        node.op_type == "Conv"
        and node.domain in ("", "ai.onnx")
        and view.is_float(node.output[0])
        and all(name in view.constants for name in node.input[1:] if name)
        and node.input[0] not in view.constants
    )


def _chain(
    view: GraphView,
    place: int,
    constants: Constants,
    region_of: Mapping[str, str],
    uses: Counter[str],
) -> list[_Step]:
    node = view.nodes[place]
    shape = view.tensors[node.input[1]].shape if node.input[1] in view.tensors else None
    region = region_of[key_of(node)]
    channels = shape[0] if shape else None
    chain: list[_Step] = []
    name = node.output[0]
    while channels and uses[name] == 1 and name not in view.pinned:
        following = view.readers[name][0]
        reader = view.nodes[following]
        if region_of.get(key_of(reader)) != region:
            break
        try:
            step = _step(following, reader, name, constants, channels)
        except (KeyError, ValueError):
            break
        if step is None:
            break
        chain.append(step)
        name = step.output
    return chain


def _step(
    place: int, node: NodeProto, source: str, constants: Constants, channels: int
) -> _Step | None:
    ones, zeros = np.ones(channels), np.zeros(channels)
    if node.op_type == "BatchNormalization" and node.input[0] == source:
        if len([name for name in node.output if name]) > 1 or attribute(node, "training_mode", 0):
            return None
        gamma, beta, mean, variance = (
            constants[name].astype(np.float64) for name in node.input[1:5]
        )
        scale = gamma / np.sqrt(variance + attribute(node, "epsilon", _EPSILON))
        return _Step(place, node.output[0], scale * ones, (beta - mean * scale) * ones)
    if node.op_type not in {"Mul", "Add"} or len(node.input) != 2:
        return None
    other = node.input[1] if node.input[0] == source else node.input[0]
    values = _by_channel(constants[other], channels)
    if node.op_type == "Mul":
        return _Step(place, node.output[0], values, zeros)
    return _Step(place, node.output[0], ones, values)


def _by_channel(array: Array, channels: int) -> Vector:
    """What an array does to each channel of an (N, C, ...) tensor.

    Raises:
        ValueError: It is no number a channel.
    """
    # Beside (N, C, H, W): (C, 1, 1), (1, C, 1, 1), or a single number of at most that rank.
    is_one = array.size == 1
    axis = array.ndim - 3
    is_vector = axis in (0, 1) and array.shape[axis] == array.size == channels
    if not (is_one and array.ndim <= 3) and not is_vector:
        msg = "not one number a channel"
        raise ValueError(msg)
    return np.broadcast_to(array.reshape(-1).astype(np.float64), (channels,))


def _folded(
    node: NodeProto, chain: list[_Step], constants: Constants
) -> tuple[NodeProto, tuple[TensorProto, TensorProto]]:
    weights = constants[node.input[1]].astype(np.float64)
    channels = weights.shape[0]
    has_bias = len(node.input) > 2 and bool(node.input[2])
    bias = constants[node.input[2]].astype(np.float64) if has_bias else np.zeros(channels)
    for step in chain:
        weights = weights * step.scale.reshape(-1, *[1] * (weights.ndim - 1))
        bias = bias * step.scale + step.shift
    made = NodeProto()
    made.CopyFrom(node)
    out = chain[-1].output
    names = (f"{out}@weights", f"{out}@bias")
    made.input[:] = [node.input[0], *names]
    made.output[0] = out
    return made, (
        numpy_helper.from_array(weights.astype(np.float32), names[0]),
        numpy_helper.from_array(bias.astype(np.float32), names[1]),
    )
