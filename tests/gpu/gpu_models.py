"""Small networks that TensorRT of every version takes (operator set 13)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import numpy.typing as npt

    Arrays = dict[str, npt.NDArray[Any]]

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
STATE = "past:present"


@dataclass(frozen=True)
class Network:
    """A model and inputs for it.

    Attributes:
        write: Writes the model into a file.
        inputs: Inputs of one or more shapes.
    """

    write: Callable[[Path], None]
    inputs: tuple[Arrays, ...]


def save(
    path: Path,
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[tuple[str, int, Sequence[int | str]]],
    outputs: Sequence[tuple[str, int, Sequence[int | str]]],
    weights: Arrays | None = None,
) -> None:
    graph = helper.make_graph(
        list(nodes),
        path.stem,
        [helper.make_tensor_value_info(*entry) for entry in inputs],
        [helper.make_tensor_value_info(*entry) for entry in outputs],
        [numpy_helper.from_array(array, name) for name, array in (weights or {}).items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, path)


def random(shape: Sequence[int], seed: int = 0) -> npt.NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def write_conv(path: Path, seed: int = 0) -> None:
    """A convolution, pooled, and a classifier."""
    node = helper.make_node
    save(
        path,
        [
            node("Conv", ["x", "kernel", "bias"], ["a"], pads=[1, 1, 1, 1], name="conv"),
            node("Relu", ["a"], ["b"]),
            node("GlobalAveragePool", ["b"], ["c"]),
            node("Flatten", ["c"], ["d"]),
            node("Gemm", ["d", "matrix", "offset"], ["y"], name="classify"),
        ],
        [("x", FLOAT, [4, 3, 224, 224])],
        [("y", FLOAT, [4, 10])],
        {
            "kernel": random((16, 3, 3, 3), seed),
            "bias": random((16,), seed + 1),
            "matrix": random((16, 10), seed + 2),
            "offset": random((10,), seed + 3),
        },
    )


def write_mlp(path: Path) -> None:
    """Two products with a free batch."""
    node = helper.make_node
    save(
        path,
        [
            node("MatMul", ["x", "first"], ["a"]),
            node("Relu", ["a"], ["b"]),
            node("MatMul", ["b", "second"], ["y"]),
        ],
        [("x", FLOAT, ["batch", 64])],
        [("y", FLOAT, ["batch", 8])],
        {"first": random((64, 128)), "second": random((128, 8), 1)},
    )


def write_nonzero(path: Path) -> None:
    """Positions that are not zero: how many, only the data say."""
    save(
        path,
        [helper.make_node("NonZero", ["x"], ["y"])],
        [("x", FLOAT, [4, 16])],
        [("y", INT64, [2, "count"])],
    )


def write_boxes(path: Path) -> None:
    """Boxes that do not hide each other: how many, only the data say."""
    save(
        path,
        [
            helper.make_node(
                "NonMaxSuppression", ["boxes", "scores", "most", "overlap", "least"], ["y"]
            )
        ],
        [("boxes", FLOAT, [1, 32, 4]), ("scores", FLOAT, [1, 1, 32])],
        [("y", INT64, ["count", 3])],
        {
            "most": np.array([20]),
            "overlap": np.array([0.5], np.float32),
            "least": np.array([0.3], np.float32),
        },
    )


def boxes(seed: int) -> Arrays:
    corners = np.random.default_rng(seed).uniform(0, 50, (1, 32, 2)).astype(np.float32)
    scores = np.random.default_rng(seed + 1).permutation(32).astype(np.float32) / 32
    return {
        "boxes": np.concatenate([corners, corners + 20], axis=2),
        "scores": scores.reshape(1, 1, 32),
    }


def write_cache(path: Path) -> None:
    """A state that the input is added to, and what it adds up to."""
    node = helper.make_node
    save(
        path,
        [
            node("Add", ["past", "x"], ["present"]),
            node("ReduceMean", ["present"], ["y"], axes=[1], keepdims=1),
        ],
        [("x", FLOAT, [8, 256]), ("past", FLOAT, [8, 256])],
        [("present", FLOAT, [8, 256]), ("y", FLOAT, [8, 1])],
    )


def write_lookup(path: Path) -> None:
    """Rows of a table by number; the numbers are wider than TensorRT 8 computes."""
    save(
        path,
        [helper.make_node("Gather", ["table", "x"], ["y"], axis=0)],
        [("x", INT64, [5])],
        [("y", FLOAT, [5, 32])],
        {"table": random((100, 32))},
    )


def write_quotient(path: Path) -> None:
    """Not a number wherever both inputs are zero."""
    save(
        path,
        [helper.make_node("Div", ["x", "z"], ["y"])],
        [("x", FLOAT, [2, 8]), ("z", FLOAT, [2, 8])],
        [("y", FLOAT, [2, 8])],
    )


NETWORKS = {
    "conv": Network(write_conv, ({"x": random((4, 3, 224, 224))},)),
    "mlp": Network(write_mlp, tuple({"x": random((batch, 64))} for batch in (8, 1, 3))),
    "nonzero": Network(
        write_nonzero,
        (
            {"x": np.maximum(random((4, 16), 1), 0)},
            {"x": np.maximum(random((4, 16), 2), 0)},
            {"x": np.zeros((4, 16), np.float32)},
        ),
    ),
    "boxes": Network(write_boxes, (boxes(1), boxes(2))),
    "cache": Network(write_cache, ({"x": random((8, 256)), "past": random((8, 256), 1)},)),
    "lookup": Network(write_lookup, ({"x": np.array([0, 99, 5, 5, 7])},)),
    "quotient": Network(
        write_quotient, ({"x": np.zeros((2, 8), np.float32), "z": np.zeros((2, 8), np.float32)},)
    ),
}
