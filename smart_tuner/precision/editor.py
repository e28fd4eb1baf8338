"""A graph being rewritten: nodes in order, new tensors with names of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper

from smart_tuner.precision.weights import read_tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from smart_tuner.precision.view import GraphView
    from smart_tuner.precision.weights import Array


class Editor:
    """Collects the nodes and weights of a rewritten main graph.

    Every tensor of the original keeps its name for its 32-bit form; other forms get names made
    of it and of what they are.

    Args:
        view: The graph that is rewritten.
        folder: Where its external data lies.
    """

    def __init__(self, view: GraphView, folder: Path) -> None:
        self.view = view
        self.nodes: list[NodeProto] = []
        self.weights: list[TensorProto] = []
        self._folder = folder
        self._stored = {weight.name: weight for weight in view.model.graph.initializer}
        self._arrays: dict[str, Array] = {}
        self._names = {name for node in view.nodes for name in (*node.input, *node.output)}
        self._names.update(view.tensors)
        self._node_names = {node.name for node in view.nodes}
        self._forms: dict[tuple[str, str], str] = {}
        self._restored: dict[str, NodeProto] = {}

    # ---------------------------------------------------------------- names
    def new_name(self, name: str, form: str) -> str:
        """A tensor name that is not taken."""
        return _free(f"{name}@{form}", self._names)

    def add(
        self, kind: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any
    ) -> NodeProto:
        """Append a node of the ONNX domain."""
        name = _free(f"{outputs[0]}:{kind}", self._node_names)
        node = helper.make_node(kind, inputs, outputs, name, **attributes)
        self.nodes.append(node)
        return node

    def copy(
        self,
        node: NodeProto,
        inputs: Mapping[int, str] | None = None,
        outputs: Mapping[int, str] | None = None,
    ) -> NodeProto:
        """Append a copy of a node with some inputs and outputs in other forms."""
        made = NodeProto()
        made.CopyFrom(node)
        for place, name in (inputs or {}).items():
            made.input[place] = name
        for place, name in (outputs or {}).items():
            made.output[place] = name
        self.nodes.append(made)
        return made

    # ---------------------------------------------------------------- weights
    def array(self, name: str) -> Array | None:
        """The content of a stored weight; ``None`` for any other tensor."""
        if name not in self._arrays:
            weight = self._stored.get(name)
            if weight is None:
                return None
            self._arrays[name] = read_tensor(weight, self._folder)
        return self._arrays[name]

    def is_weight(self, name: str) -> bool:
        """Whether a tensor is stored in the file."""
        return name in self._stored

    def weight(self, name: str, form: str, array: Array) -> str:
        """Store an array under a name made of another's; returns it."""
        chosen = self.new_name(name, form)
        self.weights.append(numpy_helper.from_array(np.asarray(array, order="C"), chosen))
        return chosen

    def raw_weight(self, tensor: TensorProto) -> str:
        """Store a tensor as it is; returns its name."""
        self.weights.append(tensor)
        return tensor.name

    # ---------------------------------------------------------------- forms
    def form(self, name: str, form: str, make: Callable[[], str]) -> str:
        """The name of a tensor's other form, made at its first use."""
        if (name, form) not in self._forms:
            self._forms[name, form] = make()
        return self._forms[name, form]

    def has_form(self, name: str, form: str) -> bool:
        """Whether a tensor has that form by now."""
        return (name, form) in self._forms

    def set_form(self, name: str, form: str, other: str) -> None:
        """Say what a tensor is called in another form."""
        self._forms[name, form] = other

    def restore(self, name: str, lowered: str) -> None:
        """Give a tensor its 32-bit form back, if anything turns out to read it."""
        self._restored[name] = self.add("Cast", [lowered], [name], to=int(TensorProto.FLOAT))

    def finish(self) -> list[NodeProto]:
        """The nodes, without casts back that nothing reads."""
        read = {name for node in self.nodes for name in node.input} | self.view.pinned
        idle = {id(node) for name, node in self._restored.items() if name not in read}
        return [node for node in self.nodes if id(node) not in idle]


def _free(wanted: str, taken: set[str]) -> str:
    name = wanted
    number = 2
    while name in taken:
        name = f"{wanted}-{number}"
        number += 1
    taken.add(name)
    return name
