"""Every public case that runs at all runs with its regions lowered, or is refused in one line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnxruntime
import pytest

from smart_tuner.backends.onnxruntime.precision import precision_support
from smart_tuner.errors import SmartTunerError
from smart_tuner.model.load import load_model
from smart_tuner.model.shapes import resolve_shapes
from smart_tuner.model.synthetic import synthetic_inputs
from smart_tuner.model.tensors import save_tensors
from smart_tuner.precision.job import Job, prepare
from smart_tuner.precision.regions import regions
from smart_tuner.precision.rewrite import rewrite

if TYPE_CHECKING:
    from pathlib import Path

LOWERED = {"O01a", "O02", "O03", "O05c", "O11b", "O23b"}
"""Cases with a convolution or matrix product in 32 bits; all others have nothing to lower."""

TOO_NEW = {"O05a", "O05b"}
"""Of versions that this runtime does not load at all."""

NO_KERNEL = {"O05c": "int8"}
"""An operator set so new that this runtime has no QuantizeLinear for it: trials say so."""


def rows(cases: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((cases / "manifest.json").read_text())
    return [row for row in found if row["file"].endswith(".onnx")]


def refusal(path: Path) -> str:
    """Why a file has no regions; empty if it has."""
    try:
        load_model(path)
        regions(path, ["per-layer"])
    except SmartTunerError as error:
        return str(error)
    return ""


def test_cases_without_anything_to_lower_are_refused_in_one_line(cases: Path) -> None:
    said = {row["id"]: refusal(cases / row["file"]) for row in rows(cases)}
    assert {case for case, text in said.items() if not text} - TOO_NEW == LOWERED
    assert not any("\n" in text for text in said.values())
    assert sum("leave out --regions" in text for text in said.values()) > 30


@pytest.mark.parametrize("case", sorted(LOWERED))
def test_a_case_runs_with_its_regions_lowered(cases: Path, tmp_path: Path, case: str) -> None:
    row = next(row for row in rows(cases) if row["id"] == case)
    path = cases / row["file"]
    spec = load_model(path)
    shapes = resolve_shapes(spec, {}).shapes
    inputs = synthetic_inputs(spec, shapes, {}, (0, "default", "synthetic-0"))
    save_tensors(tmp_path / "inputs", inputs)
    found = regions(path, ["per-layer"])
    support = precision_support({})
    job = Job(
        model=path,
        sha256=spec.sha256,
        size_bytes=spec.size_bytes,
        regions=found,
        values=frozenset(support.values),
        scheme=support.scheme,
        inputs=(tmp_path / "inputs",),
    )
    prepare(tmp_path / "precision", job)
    wanted = onnxruntime.InferenceSession(str(path)).run(None, dict(inputs))
    for value in support.values:
        if NO_KERNEL.get(case) == value:
            continue
        out = tmp_path / f"{value}.onnx"
        rewrite(tmp_path / "precision", {region.name: value for region in found}, out)
        onnx.checker.check_model(str(out))
        outputs = onnxruntime.InferenceSession(str(out)).run(None, dict(inputs))
        for array, reference in zip(outputs, wanted, strict=True):
            assert array.dtype == reference.dtype
            scale = np.abs(reference).max()
            np.testing.assert_allclose(array / scale, reference / scale, atol=0.1)
