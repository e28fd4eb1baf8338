"""Networks with lowered regions through NVIDIA's real compiler, whose networks are strongly typed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from smart_tuner.backends.tensorrt.backend import TensorRtRtxBackend
from smart_tuner.engine.build import BuildRequest
from smart_tuner.model.load import load_model
from smart_tuner.model.tensors import save_tensors
from smart_tuner.precision.job import Job, prepare
from smart_tuner.precision.regions import regions
from smart_tuner.precision.support import BF16, FP8, FP16, INT8
from smart_tuner.route.build_route import BuildRoute
from smart_tuner.trial.lowered import build_lowered
from tests.unit.precision.networks import inputs_of, mixed_network, saved

if TYPE_CHECKING:
    from pathlib import Path

    from smart_tuner.engine.build import Engine

CAPABILITY = "89"
SHAPES = {"x": (2, 3, 8, 8), "deep": ()}


def prepared(folder: Path, value: str) -> tuple[Path, Path]:
    """The mixed network, and the folder that it is rewritten from."""
    model = saved(mixed_network(opset=13), folder / "mixed.onnx")
    spec = load_model(model)
    save_tensors(folder / "inputs", inputs_of(0))
    support = TensorRtRtxBackend().precisions({})
    job = Job(
        model=model,
        sha256=spec.sha256,
        size_bytes=spec.size_bytes,
        regions=regions(model, ["per-layer"]),
        values=frozenset({value}),
        scheme=support.scheme,
        inputs=(folder / "inputs",),
    )
    prepare(folder / "precision", job)
    return model, folder / "precision"


def build(model: Path, precision: Path, route: dict[str, str], out: Path) -> Engine:
    out.mkdir()
    request = BuildRequest(
        model=model,
        route=BuildRoute(tuple(sorted(route.items()))),
        base={"compute_capability": CAPABILITY},
        shapes=(SHAPES,),
        precision=precision,
    )
    return build_lowered(TensorRtRtxBackend(), request, out)


@pytest.mark.parametrize("value", [FP16, BF16, INT8, FP8])
def test_the_compiler_takes_regions_in_every_type_that_it_names(
    tmp_path: Path, value: str
) -> None:
    assert value in TensorRtRtxBackend().precisions({}).values
    model, precision = prepared(tmp_path, value)
    whole = {f"precision.{name}": value for name in ("stem/conv", "body/conv", "head/gemm")}
    lowered = build(model, precision, whole, tmp_path / "lowered")
    kept = build(model, precision, dict.fromkeys(whole, "keep"), tmp_path / "kept")
    assert lowered.request.model == tmp_path / "lowered" / "model.onnx"
    assert lowered.companions == (lowered.request.model,)
    assert lowered.request.route.values == whole
    # Two builds of this network differ in bytes by themselves; what is built is the user's file.
    assert kept.request.model == model
    assert kept.companions == ()
