from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from smart_tuner.backends.onnxruntime.catalogue import load_catalogue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from smart_tuner.backends.onnxruntime.catalogue import Catalogue

    Value = tuple[str, int, Any]
    SaveModel = Callable[..., Path]
    RunChild = Callable[..., tuple[str, str]]


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        load_catalogue.cache_clear()
        yield
    load_catalogue.cache_clear()


@pytest.fixture
def catalogue() -> Catalogue:
    return load_catalogue()


@pytest.fixture
def save_model(tmp_path: Path) -> SaveModel:
    """Save a model of nodes, inputs, outputs and weights; returns its path."""

    def save(
        nodes: Sequence[onnx.NodeProto],
        inputs: Sequence[Value],
        outputs: Sequence[Value],
        weights: Mapping[str, object] | None = None,
        *,
        opsets: Mapping[str, int] | None = None,
        ir_version: int = 8,
    ) -> Path:
        graph = helper.make_graph(
            list(nodes),
            "graph",
            [helper.make_tensor_value_info(*value) for value in inputs],
            [helper.make_tensor_value_info(*value) for value in outputs],
            [numpy_helper.from_array(np.asarray(w), n) for n, w in (weights or {}).items()],
        )
        model = helper.make_model(
            graph,
            opset_imports=[
                helper.make_opsetid(*pair) for pair in {"": 17, **(opsets or {})}.items()
            ],
            ir_version=ir_version,
        )
        path = tmp_path / "model.onnx"
        onnx.save_model(model, path)
        return path

    return save


@pytest.fixture
def convolution(save_model: SaveModel) -> Path:
    """Conv, BatchNormalization, Relu, an addition of constants: most passes have work."""
    random = np.random.default_rng(0)
    per_channel = ("scale", "bias", "mean", "variance")
    weights: dict[str, object] = {
        "w": random.standard_normal((16, 16, 3, 3)).astype(np.float32),
        "one": np.float32(1),
        "two": np.float32(2),
        **{name: np.abs(random.standard_normal(16)).astype(np.float32) for name in per_channel},
    }
    return save_model(
        [
            helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
            helper.make_node("BatchNormalization", ["c", *per_channel], ["n"]),
            helper.make_node("Relu", ["n"], ["r"]),
            helper.make_node("Add", ["one", "two"], ["three"]),
            helper.make_node("Add", ["r", "three"], ["y"]),
        ],
        [("x", TensorProto.FLOAT, [1, 16, 8, 8])],
        [("y", TensorProto.FLOAT, [1, 16, 8, 8])],
        weights,
    )


@pytest.fixture
def gelu(save_model: SaveModel) -> Path:
    """The exact Gelu, spelt out."""
    return save_model(
        [
            helper.make_node("Div", ["x", "root"], ["d"]),
            helper.make_node("Erf", ["d"], ["e"]),
            helper.make_node("Add", ["e", "one"], ["p"]),
            helper.make_node("Mul", ["x", "p"], ["q"]),
            helper.make_node("Mul", ["q", "half"], ["y"]),
        ],
        [("x", TensorProto.FLOAT, [1, 256])],
        [("y", TensorProto.FLOAT, [1, 256])],
        {"root": np.float32(2**0.5), "one": np.float32(1), "half": np.float32(0.5)},
    )


@pytest.fixture
def run_child() -> RunChild:
    def run(code: str, *arguments: str) -> tuple[str, str]:
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout, done.stderr

    return run
