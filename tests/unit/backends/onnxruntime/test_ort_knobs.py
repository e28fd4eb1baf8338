from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
from onnx import TensorProto, helper

from smart_tuner.backends.onnxruntime import OnnxRuntimeBackend
from smart_tuner.backends.onnxruntime.catalogue import load_catalogue
from smart_tuner.backends.onnxruntime.cuda_options import cuda_knobs
from smart_tuner.backends.onnxruntime.knobs import knob_database
from smart_tuner.backends.onnxruntime.resolve import resolve_settings
from smart_tuner.devices.cpu import cpu_quota
from smart_tuner.errors import ModelError
from smart_tuner.model.files import file_digest
from smart_tuner.model.spec import ModelSpec, TensorSpec
from smart_tuner.route.build_route import BuildRoute

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from smart_tuner.backends.onnxruntime.catalogue import Catalogue

    RunChild = Callable[..., tuple[str, str]]
    SaveModel = Callable[..., Path]


def spec(path: Path, *operators: str) -> ModelSpec:
    tensor = TensorSpec("x", "float32", (1,))
    return ModelSpec(
        path=path,
        sha256=file_digest(path),
        size_bytes=path.stat().st_size,
        inputs=(tensor,),
        outputs=(tensor,),
        ir_version=8,
        opsets={"": 17},
        operators=dict.fromkeys(operators, 1),
    )


def test_there_are_at_least_sixty_knobs() -> None:
    database = OnnxRuntimeBackend().knobs()
    if database.tuner_version == "onnxruntime 1.32.0":
        assert len(database) >= 60
    assert len({knob.name for knob in database}) == len(database)


def test_every_knob_explains_itself_and_has_a_choice() -> None:
    for knob in OnnxRuntimeBackend().knobs():
        assert knob.help.endswith(".")
        assert "\n" not in knob.help
        assert knob.source
        assert not knob.idle
        assert knob.default in knob.values
        assert len(knob.choices) >= 2


def test_every_value_of_every_knob_is_understood(catalogue: Catalogue) -> None:
    for knob in OnnxRuntimeBackend().knobs():
        for value in knob.choices:
            resolve_settings({}, BuildRoute(((knob.name, value),)), catalogue)


def test_thread_knobs_stop_at_the_quota() -> None:
    knob = OnnxRuntimeBackend().knobs()["threads:intra"]
    assert knob.choices[0] == "auto"
    assert max(int(value) for value in knob.values if value != "auto") == cpu_quota()


def test_one_allowed_cpu_means_one_thread(run_child: RunChild) -> None:
    out, _ = run_child(
        "import os; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])\n"
        "from smart_tuner.backends.onnxruntime import OnnxRuntimeBackend\n"
        "backend = OnnxRuntimeBackend()\n"
        "print(backend.knobs()['threads:intra'].values, backend.platform().details['cpu_quota'])"
    )
    assert out.strip() == "('auto', '1') 1"


def test_passes_without_work_are_idle(convolution: Path) -> None:
    database = OnnxRuntimeBackend().knobs(spec(convolution, "Conv", "BatchNormalization"))
    for name in (
        "optimizer:ConstantFolding",
        "optimizer:NchwcTransformer",
        "optimizer:Level1_RuleBasedTransformer",
        "rule:ConvBNFusion",
        "session:intra_op.allow_spinning",
        "threads:inter",
    ):
        assert not database[name].idle, name
    for name in ("optimizer:AttentionFusion", "rule:LabelEncoderFusion"):
        assert database[name].idle == "changed nothing in this model"
    assert "QuantizeLinear" in database["session:disable_quant_qdq"].idle
    assert "Erf" in database["session:optimization.enable_gelu_approximation"].idle


def test_a_pass_that_only_works_when_another_is_off_is_not_idle(gelu: Path) -> None:
    database = OnnxRuntimeBackend().knobs(spec(gelu, "Erf", "Div", "Add", "Mul"))
    awake = [name for name in ("GeluFusionL1", "GeluFusionL2") if f"optimizer:{name}" in database]
    assert any(not database[f"optimizer:{name}"].idle for name in awake)
    assert not database["session:optimization.enable_gelu_approximation"].idle


def test_a_model_too_new_is_refused_with_both_versions(save_model: SaveModel) -> None:
    path = relu(save_model, ir_version=99)
    with pytest.raises(ModelError, match=r"IR version 99.*up to \d+"):
        OnnxRuntimeBackend().knobs(spec(path, "Relu"))
    path = relu(save_model, opset=999)
    with pytest.raises(ModelError, match=r"opset 999.*up to \d+"):
        OnnxRuntimeBackend().knobs(spec(path, "Relu"))


def test_a_custom_operator_leaves_all_knobs_open(
    save_model: SaveModel, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    path = save_model(
        [helper.make_node("Foo", ["x"], ["y"], domain="my.ops")],
        [("x", TensorProto.FLOAT, [4])],
        [("y", TensorProto.FLOAT, [4])],
        opsets={"my.ops": 1},
    )
    database = OnnxRuntimeBackend().knobs(spec(path, "my.ops::Foo"))
    assert not database["optimizer:AttentionFusion"].idle
    assert "my.ops::Foo" in caplog.text
    assert not [record for record in caplog.records if record.levelname == "WARNING"]


def test_the_catalogue_is_found_again_in_the_cache_even_a_damaged_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first = load_catalogue.__wrapped__()
    (file,) = tmp_path.rglob("*.json")
    written = file.stat().st_mtime_ns
    assert load_catalogue.__wrapped__() == first
    assert file.stat().st_mtime_ns == written
    file.write_text("{")
    assert load_catalogue.__wrapped__() == first


def test_a_model_is_looked_into_once(
    gelu: Path, save_model: SaveModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = OnnxRuntimeBackend().knobs(spec(gelu, "Erf", "Div", "Add", "Mul"))
    monkeypatch.setattr(sys, "executable", "/no/python")
    assert OnnxRuntimeBackend().knobs(spec(gelu, "Erf", "Div", "Add", "Mul")) == first
    with pytest.raises(FileNotFoundError):
        OnnxRuntimeBackend().knobs(spec(relu(save_model), "Relu"))


def test_on_a_gpu_threads_are_idle_and_the_providers_options_are_knobs(convolution: Path) -> None:
    database = knob_database(None, "cuda")
    assert "processor" in database["threads:intra"].idle
    assert "processor" in database["session:intra_op.allow_spinning"].idle
    assert not database["graph_optimization_level"].idle
    assert not database["cuda:enable_cuda_graph"].idle
    assert "cuda:enable_cuda_graph" not in OnnxRuntimeBackend().knobs()


def test_options_for_operators_that_the_model_lacks_are_idle() -> None:
    knobs = {knob.name: knob for knob in cuda_knobs({"Relu": 1})}
    assert knobs["cuda:prefer_nhwc"].idle == "no Conv or ConvTranspose in this model"
    assert not knobs["cuda:use_tf32"].idle
    assert not any(knob.idle for knob in cuda_knobs())


def relu(save_model: SaveModel, *, opset: int = 17, ir_version: int = 8) -> Path:
    value = ("x", TensorProto.FLOAT, [4])
    node = helper.make_node("Relu", ["x"], ["y"])
    return save_model(
        [node], [value], [("y", TensorProto.FLOAT, [4])], opsets={"": opset}, ir_version=ir_version
    )
