"""The fake network and the fake ONNX parser, which reads real ONNX files."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx
from google.protobuf.message import DecodeError
from onnx import TensorProto

Shape = tuple[int, ...]

_TYPES = {
    TensorProto.FLOAT: "FLOAT",
    TensorProto.FLOAT16: "HALF",
    TensorProto.INT64: "INT64",
    TensorProto.INT32: "INT32",
    TensorProto.BOOL: "BOOL",
}


@dataclass
class Tensor:
    """An input or output."""

    name: str
    shape: tuple[int, ...]
    dtype: Any
    names: list[str]
    allowed_formats: int = 1
    is_shape_tensor: bool = False

    def get_dimension_name(self, index: int) -> str:
        return self.names[index]

    def set_dimension_name(self, index: int, name: str) -> None:
        self.names[index] = name


@dataclass
class Network:
    """What the parser fills."""

    flags: int
    model: Path | None = None
    operators: list[str] = field(default_factory=list)
    inputs: list[Tensor] = field(default_factory=list)
    outputs: list[Tensor] = field(default_factory=list)

    @property
    def num_inputs(self) -> int:
        return len(self.inputs)

    @property
    def num_outputs(self) -> int:
        return len(self.outputs)

    def get_input(self, index: int) -> Tensor:
        return self.inputs[index]

    def get_output(self, index: int) -> Tensor:
        return self.outputs[index]


@dataclass
class Code:
    """A parser's error code."""

    name: str


@dataclass
class ParserError:
    """One complaint."""

    kind: str
    text: str
    number: int = -1
    title: str = ""
    operator: str = ""

    def code(self) -> Code:
        return Code(self.kind)

    def desc(self) -> str:
        return self.text

    def node(self) -> int:
        return self.number

    def node_name(self) -> str:
        return self.title

    def node_operator(self) -> str:
        return self.operator


@dataclass
class Profile:
    """An optimization profile."""

    shapes: dict[str, tuple[Shape, ...]] = field(default_factory=dict)

    def set_shape(self, name: str, low: Shape, opt: Shape, high: Shape) -> None:
        self.shapes[name] = (low, opt, high)

    set_shape_input = set_shape


class OnnxParser:
    """Knows the operators of ONNX itself and no others."""

    def __init__(self, network: Network, logger: Any, types: Any) -> None:
        del logger
        self._network = network
        self._types = types
        self._errors: list[ParserError] = []

    @property
    def num_errors(self) -> int:
        return len(self._errors)

    def get_error(self, index: int) -> ParserError:
        return self._errors[index]

    def parse_from_file(self, model: str) -> bool:
        try:
            graph = onnx.load(model).graph
        except DecodeError:
            self._errors.append(ParserError("MODEL_DESERIALIZE_FAILED", "Failed to parse"))
            return False
        for number, node in enumerate(graph.node):
            if node.domain:
                said = (
                    "Assertion failed: creator && Plugin not found, are the plugin name, version, "
                    "and namespace correct?"
                )
                self._errors.append(
                    ParserError("UNSUPPORTED_NODE", said, number, node.name, node.op_type)
                )
        self._network.model = Path(model)
        self._network.operators = [node.op_type for node in graph.node]
        self._network.inputs = [self._tensor(value) for value in graph.input]
        self._network.outputs = [self._tensor(value) for value in graph.output]
        return not self._errors

    def _tensor(self, value: Any) -> Tensor:
        tensor = value.type.tensor_type
        sizes = [size.dim_value if size.HasField("dim_value") else -1 for size in tensor.shape.dim]
        names = [size.dim_param for size in tensor.shape.dim]
        kind = self._types[_TYPES[tensor.elem_type]]
        return Tensor(value.name, tuple(sizes), kind, names)
