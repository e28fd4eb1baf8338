"""Regions: the parts of a graph whose precision is turned, each by one knob."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from smart_tuner.errors import UserInputError
from smart_tuner.model.graph import stored_tensors, subgraphs
from smart_tuner.precision.layers import ANCHORS, Layers, is_anchor, layers_of
from smart_tuner.precision.view import GraphView, key_of, load_bare, view_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from onnx import NodeProto

AUTO, PER_LAYER = "auto", "per-layer"
AUTO_REGIONS = 8
"""Regions that ``auto`` makes at most: a search of some dozen trials can still tell them apart."""

_CROSSING_COST = 0.25
"""Each tensor beyond one that a cut goes through counts as so much of a region's share."""

_NAME_CHARACTERS = 48
_QUANTIZED = re.compile(
    r"(De|Dynamic)?QuantizeLinear|QLinear\w+|\w+Integer|QGemm|QAttention|MatMulIntegerToFloat"
    r"|DynamicQuantize\w+|MatMulNBits|MatMulBnb4"
)


@dataclass(frozen=True, slots=True)
class Region:
    """Nodes that share a precision.

    Attributes:
        name: Unique, made of the model's own names.
        members: First outputs of its nodes: what nodes are known by.
        about: What it holds, for people.
    """

    name: str
    members: frozenset[str]
    about: str


def regions(model: Path, wanted: Sequence[str]) -> tuple[Region, ...]:
    """Find the regions of a model file.

    Args:
        model: The file; weights are not read.
        wanted: ``auto``, ``per-layer``, a number, or patterns of node names or outputs, each
            ``PATTERN`` or ``NAME=PATTERN``; a node belongs to the first pattern that it matches.

    Raises:
        UserInputError: It holds nothing to lower, is quantized or in half precision already, or
            a pattern matches nothing.
    """
    return find_regions(view_of(load_bare(str(model))), wanted, str(model))


def find_regions(view: GraphView, wanted: Sequence[str], where: str) -> tuple[Region, ...]:
    """As ``regions``, for a graph at hand; ``where`` names it in messages."""
    _refuse_lowered(view, where)
    layers = layers_of(view)
    if not layers.anchors:
        msg = f"{where}: {_why_none(view)}"
        raise UserInputError(msg)
    if len(wanted) == 1 and (found := _division(wanted[0], layers)) is not None:
        labels = _labels(view, layers)
        groups = [[place for layer in group for place in layers.members[layer]] for group in found]
        names = _unique(labels[group[0]] for group in found)
        return tuple(_region(view, name, group) for name, group in zip(names, groups, strict=True))
    return _by_pattern(view, wanted, where)


def _why_none(view: GraphView) -> str:
    """What to say of a graph that regions find nothing in, and what to do."""
    holders = dict.fromkeys(node.op_type for node in view.nodes if _holds_layers([node]))
    if not holders:
        return (
            "no convolution or matrix product in 32-bit floating point in its main graph, so there "
            "is nothing to lower; leave out --regions."
        )
    where = f"its convolutions and matrix products all lie inside {' and '.join(holders)}"
    remedy = "give the branch that you use as a model of its own, or " if "If" in holders else ""
    return f"{where}, where regions do not reach; {remedy}leave out --regions."


def _holds_layers(nodes: Iterable[NodeProto]) -> bool:
    """Whether a graph below these nodes, at any depth, computes."""
    return any(
        any(node.op_type in ANCHORS for node in graph.node) or _holds_layers(graph.node)
        for graph in subgraphs(nodes)
    )


def _refuse_lowered(view: GraphView, where: str) -> None:
    quantized = [node.op_type for node in view.nodes if _QUANTIZED.fullmatch(node.op_type)]
    if quantized:
        count = Counter(quantized).most_common(1)[0]
        msg = (
            f"{where}: is quantized already ({count[1]} {count[0]}); give the model as it was "
            "before, or leave out --regions."
        )
        raise UserInputError(msg)
    # Weights are initializers in most files, and constants of their own nodes in some.
    halves = Counter(
        weight.data_type for weight in stored_tensors(view.model) if len(weight.dims) > 1
    )
    names = {10: "float16", 16: "bfloat16"}
    most = halves.most_common(1)
    if most and most[0][0] in names:
        msg = (
            f"{where}: is in {names[most[0][0]]} already; give the model in float32, or leave out "
            "--regions."
        )
        raise UserInputError(msg)


def _division(wanted: str, layers: Layers) -> list[range] | None:
    """Consecutive layers of each region; ``None`` if patterns are wanted."""
    count = len(layers.anchors)
    if wanted == PER_LAYER:
        return [range(layer, layer + 1) for layer in range(count)]
    if wanted == AUTO:
        return _balanced(layers, min(AUTO_REGIONS, count))
    if not wanted.isdecimal():
        return None
    number = int(wanted)
    if not 1 <= number <= count:
        msg = (
            f"--regions {wanted}: the model has {count} layers; give a number from 1 to {count}, "
            "per-layer or auto."
        )
        raise UserInputError(msg)
    return _balanced(layers, number)


def _balanced(layers: Layers, number: int) -> list[range]:
    """Cut where few tensors go through, near equal shares of the cost."""
    total = sum(layers.costs)
    before, sums = 0.0, []
    for cost in layers.costs:
        before += cost
        sums.append(before)
    ends: list[int] = []
    for part in range(1, number):
        first = ends[-1] + 1 if ends else 0
        last = len(sums) - (number - part) - 1
        ideal = total * part / number
        share = total / number
        ends.append(
            min(
                range(first, last + 1),
                key=lambda cut: (
                    abs(sums[cut] - ideal) / share + _CROSSING_COST * layers.crossings[cut]
                ),
            )
        )
    starts = [0, *(end + 1 for end in ends)]
    return [range(a, b) for a, b in zip(starts, [*starts[1:], len(sums)], strict=True)]


def _by_pattern(view: GraphView, wanted: Sequence[str], where: str) -> tuple[Region, ...]:
    taken: set[int] = set()
    found: list[Region] = []
    for text in wanted:
        given, mark, pattern = text.partition("=")
        pattern = pattern if mark else text
        places = [
            place
            for place, node in enumerate(view.nodes)
            if place not in taken and _matches(node, pattern)
        ]
        if not any(is_anchor(view, view.nodes[place]) for place in places):
            what = "nothing" if not places else "nothing that can be lowered, or is not taken yet"
            anchor = next(node for node in view.nodes if is_anchor(view, node))
            example = anchor.name or key_of(anchor)
            msg = (
                f"--regions {text}: matches {what} in {where}; its nodes are called like "
                f"{example!r}. Give a pattern, a number, per-layer or auto."
            )
            raise UserInputError(msg)
        taken.update(places)
        found.append(_region(view, _readable(given if mark else pattern), places))
    names = _unique(region.name for region in found)
    return tuple(
        Region(name, region.members, region.about)
        for name, region in zip(names, found, strict=True)
    )


def _matches(node: NodeProto, pattern: str) -> bool:
    return fnmatchcase(node.name, pattern) or fnmatchcase(key_of(node), pattern)


def _region(view: GraphView, name: str, places: Sequence[int]) -> Region:
    nodes = [view.nodes[place] for place in places]
    anchors = [node for node in nodes if is_anchor(view, node)]
    counts = Counter(node.op_type for node in anchors)
    held = ", ".join(f"{count} {kind}" for kind, count in counts.items())
    span = _readable(anchors[0].name or key_of(anchors[0]))
    if len(anchors) > 1:
        span += f" to {_readable(anchors[-1].name or key_of(anchors[-1]))}"
    members = frozenset(key for node in nodes if (key := key_of(node)))
    return Region(name, members, f"{held} with what follows: {span}")


def _labels(view: GraphView, layers: Layers) -> list[str]:
    """What each layer is called: its anchor's name, without the path that all share."""
    anchors = [view.nodes[place] for place in layers.anchors]
    full = [node.name or key_of(node) for node in anchors]
    folders = [label.split("/")[:-1] for label in full]
    shared = 0
    while all(len(parts) > shared for parts in folders) and (
        len({parts[shared] for parts in folders}) == 1
    ):
        shared += 1
    return [_readable("/".join(label.split("/")[shared:])) for label in full]


def _readable(text: str) -> str:
    """A name that routes, patterns and tables can hold."""
    clean = re.sub(r"[^\w./-]+", "_", text, flags=re.ASCII).strip("_./-")
    return clean[-_NAME_CHARACTERS:].strip("_./-") or "region"


def _unique(names: Iterator[str] | Sequence[str]) -> list[str]:
    seen: Counter[str] = Counter()
    found: list[str] = []
    for name in names:
        seen[name] += 1
        candidate = name if seen[name] == 1 else f"{name}-{seen[name]}"
        while candidate in found:
            seen[name] += 1
            candidate = f"{name}-{seen[name]}"
        found.append(candidate)
    return found
