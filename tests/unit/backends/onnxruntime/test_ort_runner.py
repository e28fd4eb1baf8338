from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper

from smart_tuner.backends.onnxruntime.buffers import Buffer, element_type
from smart_tuner.backends.onnxruntime.runner import OnnxRuntimeRunner
from smart_tuner.backends.onnxruntime.settings import SessionSettings
from smart_tuner.engine.backend import load_backend
from smart_tuner.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import numpy.typing as npt

    SaveModel = Callable[..., Path]


FLOAT, INT64, TEXT = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING
SETTINGS = SessionSettings(intra_threads=1)


def open_runner(model: Path) -> OnnxRuntimeRunner:
    return OnnxRuntimeRunner(model, SETTINGS)


def test_the_backend_is_found_by_its_entry_point_and_knows_the_platform() -> None:
    platform = load_backend("onnxruntime").platform()
    assert platform.device
    assert platform.backend_version.startswith("onnxruntime")
    assert int(platform.details["cpu_quota"]) >= 1
    assert "CPUExecutionProvider" in platform.details["providers"]


@pytest.mark.parametrize(
    ("code", "dtype", "opset"),
    [
        (TensorProto.BFLOAT16, ml_dtypes.bfloat16, 17),
        (TensorProto.FLOAT8E4M3FN, ml_dtypes.float8_e4m3fn, 19),
        (TensorProto.FLOAT8E5M2, ml_dtypes.float8_e5m2, 19),
        (TensorProto.INT4, ml_dtypes.int4, 21),
        (TensorProto.UINT4, ml_dtypes.uint4, 21),
        (TensorProto.FLOAT16, np.float16, 17),
        (TensorProto.DOUBLE, np.float64, 17),
        (TensorProto.UINT8, np.uint8, 17),
        (TensorProto.BOOL, np.bool_, 17),
    ],
)
def test_every_element_type_goes_in_and_comes_out(
    save_model: SaveModel, code: int, dtype: type, opset: int
) -> None:
    model = save_model(
        [
            helper.make_node("Cast", ["x"], ["f"], to=FLOAT),
            helper.make_node("Cast", ["f"], ["y"], to=code),
        ],
        [("x", code, [3, 3])],
        [("y", code, [3, 3]), ("f", FLOAT, [3, 3])],
        opsets={"": opset},
        ir_version=10,
    )
    x: npt.NDArray[Any] = np.array([[0, 1, 2], [3, 1, 0], [2, 2, 7]]).astype(dtype)
    with open_runner(model) as runner:
        outputs = runner.infer({"x": x})
    assert outputs["y"].dtype == x.dtype
    assert outputs["y"].tobytes() == x.tobytes()
    np.testing.assert_array_equal(outputs["f"], x.astype(np.float32))


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize("name", ["int4", "uint4"])
def test_packed_elements_survive(name: str, count: int) -> None:
    element = element_type("x", f"tensor({name})")
    low = -8 if name == "int4" else 0
    array = (np.arange(count) % 16 + low).astype(element.numpy)
    buffer = Buffer.allocate(element, (count,))
    buffer.fill(array)
    assert buffer.data.nbytes == (count + 1) // 2
    np.testing.assert_array_equal(buffer.read(), array)


def test_poison_is_nan_where_there_is_nan_and_a_pattern_elsewhere() -> None:
    for name in ("float", "double", "float16", "bfloat16", "float8e4m3fn", "float8e5m2"):
        buffer = Buffer.allocate(element_type("x", f"tensor({name})"), (3,))
        buffer.poison()
        assert np.isnan(buffer.read().astype(np.float32)).all()
    integers = Buffer.allocate(element_type("x", "tensor(int64)"), (3,))
    integers.poison()
    assert integers.read().tobytes() == b"\xa5" * 24


def test_text_goes_in_and_comes_out(save_model: SaveModel) -> None:
    model = save_model(
        [helper.make_node("Identity", ["x"], ["y"]), helper.make_node("Relu", ["a"], ["b"])],
        [("x", TEXT, [3]), ("a", FLOAT, [2])],
        [("y", TEXT, [3]), ("b", FLOAT, [2])],
    )
    inputs = {"x": np.array(["a", "é", ""]), "a": np.array([-1, 1], np.float32)}
    with open_runner(model) as runner:
        outputs = runner.infer(inputs)
        assert 1 <= len(runner.time_block(3)) <= 3
        assert runner.outputs()["y"].tolist() == ["a", "é", ""]
    assert outputs["y"].tolist() == ["a", "é", ""]
    assert outputs["b"].tolist() == [0, 1]


def test_text_comes_out_beside_numbers(save_model: SaveModel) -> None:
    model = save_model(
        [
            helper.make_node("Cast", ["x"], ["s"], to=TEXT),
            helper.make_node("Relu", ["x"], ["y"]),
        ],
        [("x", FLOAT, [2])],
        [("s", TEXT, [2]), ("y", FLOAT, [2])],
    )
    with open_runner(model) as runner:
        outputs = runner.infer({"x": np.array([-1, 2], np.float32)})
    assert outputs["s"].tolist() == ["-1", "2"]
    assert outputs["y"].tolist() == [0, 2]


def test_inputs_are_bound_by_name_and_an_unused_one_is_no_error(save_model: SaveModel) -> None:
    model = save_model(
        [
            helper.make_node("Mul", ["b", "two"], ["b2"]),
            helper.make_node("Mul", ["c", "three"], ["c3"]),
            helper.make_node("Sub", ["a", "b2"], ["t"]),
            helper.make_node("Add", ["t", "c3"], ["y"]),
        ],
        [("c", FLOAT, [5]), ("mask", INT64, [1, 8]), ("a", FLOAT, [5]), ("b", FLOAT, [5])],
        [("y", FLOAT, [5])],
        {"two": np.float32(2), "three": np.float32(3)},
    )
    inputs = {name: np.full(5, at, np.float32) for at, name in enumerate("abc", 1)}
    mask = {"mask": np.zeros((1, 8), np.int64)}
    with open_runner(model) as runner:
        outputs = runner.infer({**inputs, **mask, "not in the model": np.zeros(1)})
    assert outputs["y"].tolist() == [6.0] * 5


def test_hostile_names(save_model: SaveModel) -> None:
    names = ["images:0", "a b", "モデル", "-x", "file", "a,b=c;d", "x[0|1]", '"q"']
    model = save_model(
        [helper.make_node("Sum", names, ["/out/ 0"])],
        [(name, FLOAT, [1]) for name in names],
        [("/out/ 0", FLOAT, [1])],
    )
    with open_runner(model) as runner:
        outputs = runner.infer({name: np.ones(1, np.float32) for name in names})
    assert outputs["/out/ 0"].tolist() == [len(names)]


def test_an_output_that_is_an_input(save_model: SaveModel) -> None:
    model = save_model(
        [helper.make_node("Relu", ["x"], ["y"])],
        [("x", FLOAT, [2])],
        [("x", FLOAT, [2]), ("y", FLOAT, [2])],
    )
    with open_runner(model) as runner:
        outputs = runner.infer({"x": np.array([-1, 1], np.float32)})
    assert outputs["x"].tolist() == [-1, 1]
    assert outputs["y"].tolist() == [0, 1]


def test_no_inputs_and_a_constant_output(save_model: SaveModel) -> None:
    model = save_model(
        [helper.make_node("Neg", ["w"], ["y"])],
        [],
        [("w", FLOAT, [2]), ("y", FLOAT, [2])],
        {"w": np.array([1, 2], np.float32)},
    )
    with open_runner(model) as runner:
        outputs = runner.infer({})
        runner.time_block(2)
        assert runner.outputs()["y"].tolist() == [-1, -2]
    assert outputs["w"].tolist() == [1, 2]


def test_scalars_empty_tensors_and_shapes_that_depend_on_data(save_model: SaveModel) -> None:
    model = save_model(
        [
            helper.make_node("NonZero", ["x"], ["places"]),
            helper.make_node("ReduceSum", ["x"], ["total"], keepdims=0),
            helper.make_node("Slice", ["x", "zero", "zero", "zero"], ["none"]),
        ],
        [("x", FLOAT, ["n", 2])],
        [("places", INT64, [2, "hits"]), ("total", FLOAT, []), ("none", FLOAT, [0, 2])],
        {"zero": np.array([0], np.int64)},
    )
    with open_runner(model) as runner:
        for hits in (0, 2, 1):
            x = np.zeros((3, 2), np.float32)
            x.flat[:hits] = 1
            outputs = runner.infer({"x": x})
            runner.time_block(2)
            assert outputs["places"].shape == (2, hits)
            assert outputs["total"].shape == ()
            assert outputs["total"] == hits
            assert outputs["none"].shape == (0, 2)
            assert runner.outputs()["places"].tobytes() == outputs["places"].tobytes()


def test_a_block_of_microsecond_runs_has_fewer_samples_than_runs(save_model: SaveModel) -> None:
    model = save_model(
        [helper.make_node("Relu", ["x"], ["y"])], [("x", FLOAT, [2])], [("y", FLOAT, [2])]
    )
    with open_runner(model) as runner:
        runner.infer({"x": np.ones(2, np.float32)})
        samples = runner.time_block(1000)
        assert len(samples) == -(-1000 // runner.runs_per_sample)


def test_timing_gives_positive_samples_and_leaves_true_outputs(
    convolution: Path,
) -> None:
    with open_runner(convolution) as runner:
        before = runner.infer({"x": np.ones((1, 16, 8, 8), np.float32)})
        samples = runner.time_block(5)
        assert 1 <= len(samples) <= 5
        assert min(samples) > 0
        assert runner.runs_per_sample >= 1
        assert runner.outputs()["y"].tobytes() == before["y"].tobytes()
        assert gc.isenabled()


def test_outputs_are_copies(convolution: Path) -> None:
    with open_runner(convolution) as runner:
        first = runner.infer({"x": np.ones((1, 16, 8, 8), np.float32)})["y"]
        kept = first.copy()
        runner.infer({"x": np.zeros((1, 16, 8, 8), np.float32)})
    np.testing.assert_array_equal(first, kept)


def test_wrong_inputs_are_named(convolution: Path) -> None:
    with open_runner(convolution) as runner:
        with pytest.raises(RunError, match="infer first"):
            runner.time_block(1)
        with pytest.raises(RunError, match="before the first infer"):
            runner.outputs()
        with pytest.raises(RunError, match="input x is missing"):
            runner.infer({})
        with pytest.raises(RunError, match="float32 is needed, float64 was given"):
            runner.infer({"x": np.ones((1, 16, 8, 8))})
        with pytest.raises(RunError, match="did not run"):
            runner.infer({"x": np.ones((1, 2, 8, 8), np.float32)})
        with pytest.raises(RunError, match="infer first"):
            runner.time_block(1)


def test_a_sequence_is_refused_by_its_type(save_model: SaveModel, tmp_path: Path) -> None:
    import onnx

    model = onnx.load(
        save_model(
            [helper.make_node("SequenceConstruct", ["x"], ["y"])],
            [("x", FLOAT, [2])],
            [("y", FLOAT, [2])],
        )
    )
    element = helper.make_tensor_type_proto(FLOAT, [2])
    model.graph.output[0].type.CopyFrom(helper.make_sequence_type_proto(element))
    path = tmp_path / "sequence.onnx"
    onnx.save_model(model, path)
    with pytest.raises(RunError, match=r"y: type seq\(tensor\(float\)\)"):
        open_runner(path)


def test_lack_of_memory_in_a_run_is_said(save_model: SaveModel) -> None:
    model = save_model(
        [
            helper.make_node("Expand", ["x", "shape"], ["a"]),
            helper.make_node("ReduceMax", ["a"], ["y"], keepdims=0),
        ],
        [("x", FLOAT, [1, 1])],
        [("y", FLOAT, [])],
        {"shape": np.array([1 << 21, 1 << 21], np.int64)},
    )
    with open_runner(model) as runner, pytest.raises(RunError, match="out of memory"):
        runner.infer({"x": np.ones((1, 1), np.float32)})
