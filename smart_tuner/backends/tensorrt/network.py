"""From an ONNX file to a network, with everything that the parser has to complain about."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from smart_tuner.backends.tensorrt import api
from smart_tuner.errors import BuildError, UserInputError
from smart_tuner.model.names import listed

if TYPE_CHECKING:
    from pathlib import Path

    from smart_tuner.backends.tensorrt.logger import BuildLog
    from smart_tuner.backends.tensorrt.sdk import Sdk
    from smart_tuner.backends.tensorrt.settings import BuildSettings

_UNSUPPORTED = "UNSUPPORTED_"
_UNREADABLE = "MODEL_DESERIALIZE_FAILED"
_ASSERTION = re.compile(r"^Assertion failed: |^\[\d+\] ")
_SHOWN_FAULTS = 5
_SHOWN_NODES = 3
_TYPES = {
    "fp32": "FLOAT",
    "fp16": "HALF",
    "bf16": "BF16",
    "fp8": "FP8",
    "int64": "INT64",
    "int32": "INT32",
    "int8": "INT8",
    "uint8": "UINT8",
    "bool": "BOOL",
}


@dataclass(frozen=True, slots=True)
class Parsed:
    """A network with the parser that made it; the parser owns the weights.

    Attributes:
        network: The network.
        parser: Kept until the plan is built.
        is_strongly_typed: Whether the types stand in the network.
    """

    network: api.NetworkDefinition
    parser: api.OnnxParser
    is_strongly_typed: bool


def parse_model(
    sdk: Sdk, builder: api.Builder, log: BuildLog, model: Path, *, weak_types: bool = False
) -> Parsed:
    """Parse a model by its path, so that weights beside it and beyond 2 GB are found.

    The network is strongly typed where the version knows that, unless ``weak_types`` asks for the
    older kind, which takes precision flags.

    Raises:
        BuildError: The parser refuses the model; one line that names operators and nodes.
    """
    flags = sdk.module.NetworkDefinitionCreationFlag
    strong = api.member(flags, "STRONGLY_TYPED")
    explicit = api.member(flags, "EXPLICIT_BATCH")
    wanted = [explicit] if weak_types or strong is None else [strong, explicit]
    bits = reduce(or_, (1 << int(flag) for flag in wanted if flag is not None), 0)
    network = builder.create_network(bits)
    parser = sdk.module.OnnxParser(network, log.native)
    since = log.position
    if not parser.parse_from_file(str(model)):
        raise BuildError(_refusal(sdk, parser, log, model, since))
    # A version without either flag knows no other kind.
    is_strong = not weak_types and (strong is not None or explicit is None)
    return Parsed(network, parser, is_strongly_typed=is_strong)


def set_formats(sdk: Sdk, parsed: Parsed, settings: BuildSettings) -> None:
    """Give inputs and outputs the types and formats that a base asks for.

    Raises:
        UserInputError: There is no such tensor, type or format, or the network fixes another type.
    """
    network = parsed.network
    tensors = {
        tensor.name: tensor
        for tensor in (
            *(network.get_input(index) for index in range(network.num_inputs)),
            *(network.get_output(index) for index in range(network.num_outputs)),
        )
    }
    for name, (element, layout) in settings.io_formats.items():
        if name not in tensors:
            known = listed(list(tensors))
            msg = f"io_formats: the model has no input or output {name!r}; there are {known}."
            raise UserInputError(msg)
        tensor = tensors[name]
        kind = api.member(sdk.module.DataType, _TYPES.get(element, ""))
        label = "LINEAR" if layout == "chw" else layout.upper()
        form = api.member(sdk.module.TensorFormat, label)
        if kind is None or form is None:
            msg = f"io_formats: {name}:{element}:{layout} is not known to {sdk}."
            raise UserInputError(msg)
        if tensor.dtype != kind:
            if parsed.is_strongly_typed:
                msg = (
                    f"io_formats: {name!r} is {tensor.dtype.name} in the model, {element} asked "
                    "for; in a strongly typed network the model says the type: convert it there."
                )
                raise UserInputError(msg)
            tensor.dtype = kind
        tensor.allowed_formats = 1 << int(form)


def _refusal(sdk: Sdk, parser: api.OnnxParser, log: BuildLog, model: Path, since: int) -> str:
    """One line with everything that the parser complained about."""
    errors = [parser.get_error(index) for index in range(parser.num_errors)]
    unreadable = any(_code(error) == _UNREADABLE for error in errors)
    if unreadable:
        return f"{sdk} cannot read {model}: it is no ONNX model, or a damaged one"
    nodes: dict[tuple[str, str], list[str]] = {}
    for error in errors:
        name, operator = _culprit(error, model)
        nodes.setdefault(_fault(error, operator), []).append(name)
    faults = [f"{who}{_among(where)}{what}" for (who, what), where in nodes.items()]
    text = "; ".join(faults[:_SHOWN_FAULTS]) or log.reason(since)
    more = len(faults) - _SHOWN_FAULTS
    rest = f"; and {more} more, see the log" if more > 0 else ""
    return f"{sdk} cannot take this model: {text}{rest}"


def _code(error: api.ParserError) -> str:
    """Name of the code; the oldest bindings give it another type than the enum's."""
    return str(getattr(error.code(), "name", error.code()))


def _culprit(error: api.ParserError, model: Path) -> tuple[str, str]:
    """Name and operator of the node that a complaint is about; empty where it is about none."""
    if isinstance(error, api.HasNodeName):
        name, operator = error.node_name(), error.node_operator()
    else:
        name, operator = _look_up(model, error.node())
    place = f"number {error.node()}" if error.node() >= 0 else ""
    return (repr(name) if name else place), operator


def _look_up(model: Path, index: int) -> tuple[str, str]:
    """Name and operator of a node by its number, for versions that tell no more."""
    import onnx

    nodes = onnx.load(model, load_external_data=False).graph.node
    if not 0 <= index < len(nodes):
        return "", ""
    return nodes[index].name, nodes[index].op_type


def _fault(error: api.ParserError, operator: str) -> tuple[str, str]:
    """What a complaint is about, and what it says of that."""
    said = _ASSERTION.sub("", " ".join(error.desc().split()))
    subject = f"operator {operator}" if operator else "the model"
    if "Plugin not found" in said:
        return subject, (
            " is not known, and no plugin has that name (if it is a custom operator, name its "
            "library in the base: plugins = /path/to/library.so)"
        )
    if _code(error).startswith(_UNSUPPORTED) and said in {"", "false"}:
        return subject, " is not supported"
    return subject, f": {said}"


def _among(where: list[str]) -> str:
    """Nodes in parentheses; nothing if none is known."""
    known = list(dict.fromkeys(filter(None, where)))
    if not known:
        return ""
    more = len(known) - _SHOWN_NODES
    shown = ", ".join(known[:_SHOWN_NODES])
    word = "node" if len(known) == 1 else "nodes"
    return f" ({word} {shown}{f' and {more} more' if more > 0 else ''})"
