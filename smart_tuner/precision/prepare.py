"""The copy of a model that all routes of a study rewrite: constants in place, norms folded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx
from onnx import numpy_helper, version_converter

from smart_tuner.errors import UserInputError
from smart_tuner.precision.assemble import assembled
from smart_tuner.precision.fold import fold_norms
from smart_tuner.precision.support import BF16, DYNAMIC, FP8, INT8
from smart_tuner.precision.view import FLOAT, inferred, load_bare, opset_of, view_of
from smart_tuner.precision.weights import Constants

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from onnx import ModelProto, NodeProto

    from smart_tuner.precision.regions import Region
    from smart_tuner.precision.view import GraphView

_NEEDED_OPSET: Mapping[str, int] = {INT8: 13, DYNAMIC: 11, BF16: 13, FP8: 19}
"""The first operator set with what a value is written in; scales by channel came with 13."""

_IR_VERSION = 8
"""The first version of the file format that goes with operator set 15; 9 has float8."""

_IN_ONE_FILE_BYTES = 1 << 30
"""Up to this size, weights beside the model move into the copy."""


def prepared_model(
    path: Path, size_bytes: int, regions: Sequence[Region], values: Collection[str]
) -> ModelProto:
    """Make the copy that is rewritten.

    Args:
        path: The model's file.
        size_bytes: Its size with its external data.
        regions: Its regions.
        values: Every value that any region may get.

    Raises:
        UserInputError: Its operator set is older than the values need, and cannot be raised.
    """
    model = load_bare(str(path))
    if size_bytes <= _IN_ONE_FILE_BYTES:
        onnx.load_external_data_for_model(model, str(path.parent))
    model = _raised(model, path, max((_NEEDED_OPSET.get(value, 1) for value in values), default=1))
    view = view_of(model)
    constants = Constants(model, list(view.nodes), path.parent)
    region_of = {name: region.name for region in regions for name in region.members}
    folded = fold_norms(view, constants, region_of)
    nodes, weights = _with_constants(view, folded.nodes, constants)
    made = assembled(model, nodes, [*folded.weights, *weights])
    made.ir_version = max(made.ir_version, 9 if FP8 in values else _IR_VERSION)
    typed = inferred(made)
    del made.graph.value_info[:]
    made.graph.value_info.extend(typed.graph.value_info)
    return made


def _raised(model: ModelProto, path: Path, needed: int) -> ModelProto:
    """The model in a later operator set, if that is needed."""
    found = opset_of(model)
    if found >= needed:
        return model
    try:
        raised = version_converter.convert_version(model, needed)
    except (RuntimeError, ValueError, TypeError) as error:
        said = " ".join(str(error).split())
        msg = (
            f"{path}: its operator set {found} cannot be raised to {needed}, which integers need "
            f"({said[:120]}); export it with a newer one, or give --precisions fp16."
        )
        raise UserInputError(msg) from None
    return raised


def _with_constants(
    view: GraphView, nodes: list[NodeProto], constants: Constants
) -> tuple[list[NodeProto], list[onnx.TensorProto]]:
    """Turn what is computed from weights alone into weights, where floats are wanted."""
    stored = {weight.name for weight in view.model.graph.initializer}
    computed = {name for node in nodes for name in node.output if name in view.constants}
    wanted = {
        name
        for node in nodes
        if not all(out in view.constants for out in node.output if out)
        for name in node.input
        if name in computed and name not in stored and _is_float(view, name)
    }
    weights = [
        numpy_helper.from_array(array, name)
        for name in sorted(wanted)
        if (array := constants.get(name)) is not None  # what cannot be computed stays a node
    ]
    made = {weight.name for weight in weights}
    kept = [node for node in nodes if not (set(node.output) & made)]
    return _without_idle(view, kept), weights


def _is_float(view: GraphView, name: str) -> bool:
    found = view.tensors.get(name)
    return found is not None and found.kind == FLOAT


def _without_idle(view: GraphView, nodes: list[NodeProto]) -> list[NodeProto]:
    """Drop constant nodes that nothing reads any more."""
    read = set(view.pinned)
    kept: list[NodeProto] = []
    for node in reversed(nodes):
        is_constant = all(name in view.constants for name in node.output if name)
        if not is_constant or read & set(node.output):
            kept.append(node)
            read.update(node.input)
    return kept[::-1]
