from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, numpy_helper, shape_inference

from smart_tuner.errors import ModelError, UserInputError
from smart_tuner.precision import job, prepare, save
from smart_tuner.precision.ranges import quantization, read_ranges
from smart_tuner.precision.rewrite import rewrite
from smart_tuner.precision.support import FP8, Scheme
from smart_tuner.precision.weights import as_half, quantized_weights
from tests.unit.precision.conftest import SUPPORT, prepare_layers
from tests.unit.precision.networks import inputs_of, mixed_network, outputs_of, saved

if TYPE_CHECKING:
    from pathlib import Path

    from smart_tuner.precision.regions import Region

    Prepared = tuple[Path, tuple[Region, ...]]

# Seen: 0.0007 for fp16, 0.03 for int8, of outputs around 1.
TOLERANCE = {"fp16": 0.005, "int8": 0.15, "int8_dynamic": 0.1}


def kinds(model: onnx.ModelProto) -> dict[str, int]:
    """Element type of every tensor."""
    graph = shape_inference.infer_shapes(model, strict_mode=True).graph
    found = {weight.name: weight.data_type for weight in graph.initializer}
    for entry in (*graph.value_info, *graph.input, *graph.output):
        found[entry.name] = entry.type.tensor_type.elem_type
    return found


def node_of(model: onnx.ModelProto, name: str) -> onnx.NodeProto:
    found: onnx.NodeProto = next(node for node in model.graph.node if node.name == name)
    return found


def lowered(prepared: Prepared, value: str, out: Path, *only: str) -> Path:
    folder, regions = prepared
    names = only or tuple(region.name for region in regions)
    return rewrite(folder, dict.fromkeys(names, value), out)[0]


@pytest.mark.parametrize("value", TOLERANCE)
def test_a_lowered_network_looks_the_same_from_outside_and_computes_nearly_the_same(
    network: Path, prepared: Prepared, tmp_path: Path, value: str
) -> None:
    path = lowered(prepared, value, tmp_path / "model.onnx")
    onnx.checker.check_model(str(path), full_check=True)
    before, after = onnx.load(network).graph, onnx.load(path).graph
    assert list(after.input) == list(before.input)
    assert list(after.output) == list(before.output)
    for seed, batch in ((0, 2), (7, 5)):
        inputs = inputs_of(seed, batch)
        wanted, found = outputs_of(network, inputs), outputs_of(path, inputs)
        for name, array in wanted.items():
            assert found[name].dtype == array.dtype
            assert found[name].shape == array.shape
            if array.dtype == np.float32:
                np.testing.assert_allclose(found[name], array, atol=TOLERANCE[value])
                assert value == "int8_dynamic" or not np.array_equal(found[name], array)


def test_statistics_of_norms_softmax_and_indices_stay_in_32_bits(
    prepared: Prepared, tmp_path: Path
) -> None:
    model = onnx.load(lowered(prepared, "fp16", tmp_path / "model.onnx"))
    found = kinds(model)
    for name in ("norm/mean", "norm/variance", "norm/sqrt", "head/softmax", "head/argmax"):
        node = node_of(model, name)
        assert found[node.input[0]] == TensorProto.FLOAT, name
    for name in ("stem/conv", "body/conv", "body/add", "head/mix", "head/gemm"):
        assert found[node_of(model, name).input[0]] == TensorProto.FLOAT16, name


@pytest.mark.parametrize("value", ["fp16", "int8"])
def test_only_nodes_of_a_lowered_region_change(
    network: Path, prepared: Prepared, tmp_path: Path, value: str
) -> None:
    path = lowered(prepared, value, tmp_path / "model.onnx", "body/conv")
    before = {node.name: node for node in onnx.load(network).graph.node}
    after = {node.name: node for node in onnx.load(path).graph.node}
    changed = {name for name, node in before.items() if after.get(name) != node}
    # A norm is folded into the convolution of its region whatever that is lowered to.
    assert (
        {"body/conv", "body/relu"}
        <= changed
        <= {*("body/conv", "body/relu", "stem/conv", "stem/norm")}
    )


def test_with_every_region_kept_there_is_nothing_to_write(
    prepared: Prepared, tmp_path: Path
) -> None:
    folder, regions = prepared
    values = {region.name: "keep" for region in regions}
    assert rewrite(folder, values, tmp_path / "model.onnx") == ()
    assert not list(tmp_path.iterdir())


def test_the_processor_runs_int8_regions_in_integer_kernels(
    prepared: Prepared, tmp_path: Path
) -> None:
    path = lowered(prepared, "int8", tmp_path / "model.onnx")
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    made = [node.op_type for node in onnx.load(tmp_path / "optimized.onnx").graph.node]
    assert made.count("QLinearConv") == 3
    assert "QLinearAdd" in made
    assert "QGemm" in made
    assert not {"Conv", "Relu", "MatMul", "Gemm", "BatchNormalization"} & set(made)


def test_regions_of_different_types_go_together(
    network: Path, prepared: Prepared, tmp_path: Path
) -> None:
    folder, regions = prepared
    names = [region.name for region in regions]
    values = dict(zip(names, ("int8", "fp16", "int8", "int8_dynamic", "fp16"), strict=True))
    (path,) = rewrite(folder, values, tmp_path / "model.onnx")
    onnx.checker.check_model(str(path), full_check=True)
    inputs = inputs_of(1)
    wanted, found = outputs_of(network, inputs), outputs_of(path, inputs)
    np.testing.assert_allclose(found["probabilities"], wanted["probabilities"], atol=0.15)


@pytest.mark.parametrize("opset", [9, 12])
def test_older_operator_sets_are_raised_where_integers_need_it(tmp_path: Path, opset: int) -> None:
    model = saved(mixed_network(opset), tmp_path / "old.onnx")
    folder = prepare_layers(model, tmp_path)
    (path,) = rewrite(folder, {"stem/conv": "int8", "body/conv": "fp16"}, tmp_path / "model.onnx")
    onnx.checker.check_model(str(path), full_check=True)
    wanted, found = outputs_of(model, inputs_of(2)), outputs_of(path, inputs_of(2))
    np.testing.assert_allclose(found["r0"], wanted["r0"], atol=0.15)


@pytest.mark.parametrize("method", ["percentile", "entropy"])
def test_other_calibrations_cut_off_what_is_rare(
    network: Path, prepared: Prepared, tmp_path: Path, method: str
) -> None:
    whole = read_ranges(prepared[0] / "ranges.json")
    cut = read_ranges(prepare_layers(network, tmp_path, method) / "ranges.json")
    assert cut.keys() == whole.keys()
    widths = [(cut[name][1] - cut[name][0]) / (high - low) for name, (low, high) in whole.items()]
    assert min(widths) < 0.999
    assert {"x", "c1", "r1"} <= whole.keys()


def test_weights_beside_the_model_are_read_and_written(
    prepared: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(save, "_IN_ONE_FILE_BYTES", 1000)
    monkeypatch.setattr(save, "_SMALL_BYTES", 0)
    monkeypatch.setattr(prepare, "_IN_ONE_FILE_BYTES", 1000)
    source = tmp_path / "source" / "big.onnx"
    source.parent.mkdir()
    onnx.save_model(
        mixed_network(),
        str(source),
        save_as_external_data=True,
        location="big.data",
        size_threshold=0,
    )
    folder = prepare_layers(source, tmp_path)
    assert (folder / "prepared.onnx").stat().st_size < 20_000
    out = tmp_path / "out"
    out.mkdir()
    files = rewrite(folder, {"stem/conv": "int8", "head/mix": "fp16"}, out / "model.onnx")
    assert [path.name for path in files] == ["model.onnx", "model.onnx.data"]
    onnx.checker.check_model(str(files[0]))
    small = lowered(prepared, "int8", tmp_path / "small.onnx", "stem/conv")
    wanted, found = outputs_of(small, inputs_of(4)), outputs_of(files[0], inputs_of(4))
    np.testing.assert_array_equal(found["r0"], wanted["r0"])


def test_what_is_prepared_is_used_again_until_something_changes(
    network: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = prepare_layers(network, tmp_path)

    def again(*_: object) -> dict[str, Any]:
        msg = "measured again"
        raise ModelError(msg)

    monkeypatch.setattr(job, "measure_ranges", again)
    prepare_layers(network, tmp_path)
    with pytest.raises(ModelError, match="measured again"):
        prepare_layers(network, tmp_path, "entropy")
    assert not (folder / "recipe.json").exists()


@pytest.mark.parametrize("file", ["recipe.json", "ranges.json"])
def test_damaged_files_are_told_in_one_line(network: Path, tmp_path: Path, file: str) -> None:
    folder = prepare_layers(network, tmp_path)
    (folder / file).write_text("[1")
    with pytest.raises(UserInputError, match=f"{file}.*damaged"):
        rewrite(folder, {"stem/conv": "int8"}, tmp_path / "model.onnx")


@pytest.mark.parametrize("values", [{"nowhere": "int8"}, {"stem/conv": "int3"}])
def test_unknown_regions_and_values_are_refused(
    prepared: Prepared, tmp_path: Path, values: dict[str, str]
) -> None:
    with pytest.raises(UserInputError, match="there are stem/conv, body/conv"):
        rewrite(prepared[0], values, tmp_path / "model.onnx")


@pytest.mark.parametrize("value", ["fp16", "bf16"])
def test_half_precision_makes_nothing_infinite_and_nothing_zero(value: str) -> None:
    array = np.array([0, 1, -3e38, 3e38, 1e-30, -1e-42, np.inf, -np.inf], np.float32)
    made = as_half(array, value).astype(np.float64)
    assert np.array_equal(np.isfinite(made), np.isfinite(array))
    assert np.array_equal(np.sign(made), np.sign(array))


@pytest.mark.parametrize("limits", [(-1.0, 3.0), (2.0, 5.0), (-4.0, -1.0), (0.0, 0.0)])
@pytest.mark.parametrize(
    ("scheme", "lowest", "highest"),
    [(SUPPORT.scheme, 0, 255), (Scheme(), -128, 127)],
    ids=["unsigned", "signed"],
)
def test_a_range_and_zero_are_written_to_half_a_step(
    limits: tuple[float, float], scheme: Scheme, lowest: int, highest: int
) -> None:
    made = quantization(limits, "int8", scheme)
    values = np.append(np.linspace(*limits, 50), 0.0)
    stored = np.clip(np.rint(values / made.scale) + made.zero, lowest, highest)
    read = (stored - made.zero) * made.scale
    assert np.abs(read - values).max() <= 0.51 * made.scale
    assert read[-1] == 0
    assert quantization((-2.0, 448.0), FP8, scheme).scale == 1


def test_weights_have_one_scale_a_channel() -> None:
    array = np.random.default_rng(0).normal(size=(4, 5)) * [[1], [10], [100], [0]]
    stored, scales = quantized_weights(array, 0, 127)
    assert scales.shape == (4,)
    error = np.abs(stored * scales[:, None] - array)
    assert (error <= 0.51 * scales[:, None]).all()
    short, _ = quantized_weights(array, None, 63)
    assert np.abs(short).max() == 63


def test_stored_weights_take_a_quarter(network: Path, prepared: Prepared, tmp_path: Path) -> None:
    def stored(path: Path) -> int:
        weights = onnx.load(path).graph.initializer
        large = [item for item in weights if len(item.dims) == 4]
        return sum(numpy_helper.to_array(item).nbytes for item in large)

    made = lowered(prepared, "int8", tmp_path / "model.onnx")
    assert stored(made) * 4 == stored(network)
