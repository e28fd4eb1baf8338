from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from smart_tuner.backends.onnxruntime import OnnxRuntimeBackend, build
from smart_tuner.backends.onnxruntime.build import read_engine
from smart_tuner.engine.build import BuildRequest, Engine
from smart_tuner.errors import BuildError, RunError, UserInputError
from smart_tuner.route.build_route import BuildRoute

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    RunChild = Callable[..., tuple[str, str]]
    SaveModel = Callable[..., Path]


BUILD = """
import sys
from pathlib import Path
from smart_tuner.backends.onnxruntime import OnnxRuntimeBackend
from smart_tuner.engine.build import BuildRequest
model, folder = map(Path, sys.argv[1:])
print(OnnxRuntimeBackend().build(BuildRequest(model), folder).fingerprint)
"""


def build_with(model: Path, **values: str) -> Engine:
    settings = tuple((name.replace("__", ":"), value) for name, value in values.items())
    request = BuildRequest(model, BuildRoute(settings))
    return OnnxRuntimeBackend().build(request, model.parent)


def test_an_engine_is_a_small_json_file_with_its_digest(convolution: Path) -> None:
    engine = build_with(convolution, optimizer__NchwcTransformer="off")
    assert engine.path == convolution.parent / "engine.json"
    assert engine.sha256 == hashlib.sha256(engine.path.read_bytes()).hexdigest()
    document = json.loads(engine.path.read_text())
    assert document["model"] == str(convolution)
    assert document["settings"]["disabled_optimizers"] == ["NchwcTransformer"]
    assert sorted(path.name for path in convolution.parent.iterdir()) == [
        "engine.json",
        "model.onnx",
    ]


def test_fingerprints_agree_across_builds_and_processes(
    convolution: Path, run_child: RunChild
) -> None:
    here = build_with(convolution).fingerprint
    there, _ = run_child(BUILD, str(convolution), str(convolution.parent))
    assert there.strip() == here


def test_a_route_without_effect_has_the_default_fingerprint(convolution: Path) -> None:
    default = build_with(convolution).fingerprint
    assert build_with(convolution, optimizer__AttentionFusion="off").fingerprint == default
    assert build_with(convolution, threads__inter="1").fingerprint == default


@pytest.mark.parametrize(
    "values",
    [
        {"optimizer__ConstantFolding": "off"},
        {"graph_optimization_level": "basic"},
        {"threads__intra": "1"},
        {"session__enable_cpu_mem_arena": "off"},
        {"session__disable_prepacking": "on"},
        {"run__memory_arena_shrinkage": "on"},
    ],
)
def test_a_route_with_effect_has_its_own_fingerprint(
    convolution: Path, values: dict[str, str]
) -> None:
    assert build_with(convolution, **values).fingerprint != build_with(convolution).fingerprint


def test_a_large_model_is_never_written_out(
    convolution: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "ARTEFACT_LIMIT_BYTES", 100)
    engine = build_with(convolution)
    assert any("large" in note for note in engine.notes)
    assert build_with(convolution).fingerprint == engine.fingerprint
    off = build_with(convolution, optimizer__AttentionFusion="off")
    assert off.fingerprint != engine.fingerprint


def test_weights_beside_the_model_are_found_from_anywhere(
    convolution: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "split model"
    folder.mkdir()
    path = folder / "model.onnx"
    onnx.save_model(
        onnx.load(convolution),
        path,
        save_as_external_data=True,
        location="weights.bin",
        size_threshold=0,
    )
    monkeypatch.chdir("/")
    engine = OnnxRuntimeBackend().build(BuildRequest(path), tmp_path)
    with OnnxRuntimeBackend().load(engine) as runner:
        assert runner.infer({"x": np.ones((1, 16, 8, 8), np.float32)})["y"].shape == (1, 16, 8, 8)
    (folder / "weights.bin").unlink()
    with pytest.raises(BuildError, match=r"weights\.bin"):
        OnnxRuntimeBackend().build(BuildRequest(path), tmp_path)


def test_the_reference_has_everything_off(gelu: Path, tmp_path: Path) -> None:
    base = {"session:optimization.enable_gelu_approximation": "on"}
    engine = OnnxRuntimeBackend().build(BuildRequest(gelu, base=base, reference=True), tmp_path)
    _, settings = read_engine(engine)
    assert settings.graph_optimization_level == "disable"
    assert settings.intra_threads == 1
    assert settings.execution_mode == "sequential"
    assert dict(settings.switches)["use_deterministic_compute"]
    assert settings.config_entries == ()


def test_a_custom_operator_names_itself_and_the_remedy(save_model: SaveModel) -> None:
    path = save_model(
        [helper.make_node("Foo", ["x"], ["y"], domain="my.ops")],
        [("x", TensorProto.FLOAT, [4])],
        [("y", TensorProto.FLOAT, [4])],
        opsets={"my.ops": 1},
    )
    with pytest.raises(BuildError, match=r"my\.ops::Foo.*custom_op_library"):
        build_with(path)


def test_a_model_too_new_names_both_versions(save_model: SaveModel) -> None:
    value = ("x", TensorProto.FLOAT, [4])
    node = helper.make_node("Relu", ["x"], ["y"])
    path = save_model([node], [value], [("y", TensorProto.FLOAT, [4])], ir_version=99)
    with pytest.raises(BuildError, match=r"IR version 99.*reads up to \d+") as caught:
        build_with(path)
    assert str(path) not in str(caught.value)


def test_a_missing_model_and_an_unknown_knob_are_user_errors(
    convolution: Path, tmp_path: Path
) -> None:
    with pytest.raises(UserInputError, match="cannot be read"):
        OnnxRuntimeBackend().build(BuildRequest(tmp_path / "none.onnx"), tmp_path)
    with pytest.raises(UserInputError, match="optimizer:ConstantFolding"):
        build_with(convolution, optimizer__ConstantFoldin="off")


def test_a_changed_engine_file_is_not_loaded(convolution: Path) -> None:
    engine = build_with(convolution)
    engine.path.write_text(engine.path.read_text().replace("sequential", "parallel"))
    with pytest.raises(RunError, match="not the file that was built"):
        OnnxRuntimeBackend().load(engine)
    engine.path.unlink()
    with pytest.raises(RunError, match="cannot be read"):
        OnnxRuntimeBackend().load(engine)


@pytest.mark.parametrize("text", ["[]", "{}", '{"schema": 99}', "no json"])
def test_a_foreign_engine_file_is_not_loaded(convolution: Path, text: str) -> None:
    engine = build_with(convolution)
    engine.path.write_text(text)
    digest = hashlib.sha256(text.encode()).hexdigest()
    with pytest.raises(RunError, match="engine"):
        OnnxRuntimeBackend().load(replace(engine, sha256=digest))
