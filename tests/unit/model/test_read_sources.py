from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, numpy_helper

from smart_tuner.errors import UserInputError
from smart_tuner.model.read import read_inputs, read_outputs
from smart_tuner.model.shapes import ResolvedShapes
from smart_tuner.model.sources import Source
from smart_tuner.model.spec import ModelSpec, TensorSpec
from smart_tuner.model.tensors import save_tensors


def model(*inputs: TensorSpec, outputs: tuple[TensorSpec, ...] = ()) -> ModelSpec:
    return ModelSpec(Path("/m.onnx"), "0", 1, inputs, outputs, 10, {"": 17}, {})


X = TensorSpec("x", "float32", ("N", 2))
TEXT = TensorSpec("x", "string", (2,))


def source(*files: Path | tuple[str, Path]) -> Source:
    pairs = tuple((None, file) if isinstance(file, Path) else file for file in files)
    return Source("given", pairs)


def read(spec: TensorSpec, *files: Path | tuple[str, Path], **given: tuple[int, ...]) -> Any:
    tensors, _ = read_inputs(model(spec), source(*files), given)
    return tensors["x"]


ARRAY = np.arange(6, dtype=np.float32).reshape(3, 2)


def test_every_form_gives_the_same_tensor(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=ARRAY)
    np.savez_compressed(tmp_path / "b.npz", x=ARRAY)
    np.save(tmp_path / "c.npy", np.asfortranarray(ARRAY))
    np.save(tmp_path / "big.npy", ARRAY.astype(">f4"))
    save_tensors(tmp_path / "d", {"x": ARRAY})
    proto = numpy_helper.from_array(ARRAY)
    (tmp_path / "input_0.pb").write_bytes(proto.SerializeToString())
    proto.name = "x"
    (tmp_path / "named.pb").write_bytes(proto.SerializeToString())
    ARRAY.tofile(tmp_path / "e.bin")
    for name in ("a.npz", "b.npz", "d", "input_0.pb", "named.pb"):
        np.testing.assert_array_equal(read(X, tmp_path / name), ARRAY)
    for name in ("c.npy", "big.npy", "input_0.pb"):
        again = read(X, ("x", tmp_path / name))
        assert again.dtype == np.float32
        np.testing.assert_array_equal(again, ARRAY)
    np.testing.assert_array_equal(read(X, ("x", tmp_path / "e.bin"), x=(3, 2)), ARRAY)


def test_the_tensors_settle_the_shapes(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=ARRAY)
    _, resolved = read_inputs(model(X), source(tmp_path / "a.npz"), {})
    assert resolved.shapes == {"x": (3, 2)}
    assert resolved.symbols == {"N": 3}
    assert resolved.notes == ()


def test_a_dump_takes_its_size_from_another_input(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", ARRAY)
    mask = np.array([1, 0, 2], np.uint8)
    mask.tofile(tmp_path / "m.bin")
    spec = model(TensorSpec("m", "bool", ("N",)), X)
    given = source(("x", tmp_path / "x.npy"), ("m", tmp_path / "m.bin"))
    tensors, _ = read_inputs(spec, given, {})
    assert list(tensors) == ["m", "x"]
    assert tensors["m"].tolist() == [True, False, True]


def test_a_dump_of_another_size_is_refused_with_both_sizes(tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(bytes(23))
    with pytest.raises(UserInputError, match="float32 3x2 needs 24 bytes, 23 found"):
        read(X, ("x", tmp_path / "x.bin"), x=(3, 2))


@pytest.mark.parametrize("dtype", ["string", "int4"])
def test_types_without_a_raw_form_are_refused(tmp_path: Path, dtype: str) -> None:
    (tmp_path / "x.bin").write_bytes(bytes(2))
    with pytest.raises(UserInputError, match="has no raw form"):
        read(TensorSpec("x", dtype, (2,)), ("x", tmp_path / "x.bin"))


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "int4"])
def test_numpy_files_keep_ml_dtypes_by_their_bits(tmp_path: Path, name: str) -> None:
    array = np.array([0, 1], np.float32).astype(getattr(ml_dtypes, name))
    np.savez(tmp_path / "a.npz", x=array)
    again = read(TensorSpec("x", name, (2,)), tmp_path / "a.npz")
    assert again.dtype == array.dtype
    assert again.tobytes() == array.tobytes()


def test_a_raw_bfloat16_dump_is_read_by_its_bits(tmp_path: Path) -> None:
    array = np.array([1.5, -2], np.float32).astype(ml_dtypes.bfloat16)
    (tmp_path / "x.bin").write_bytes(array.tobytes())
    again = read(TensorSpec("x", "bfloat16", (2,)), ("x", tmp_path / "x.bin"))
    assert again.astype(np.float32).tolist() == [1.5, -2]


def test_text_comes_as_objects(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.array(["\u00e9", ""]))
    proto = numpy_helper.from_array(np.array(["\u00e9", ""], object), "x")
    (tmp_path / "a.pb").write_bytes(proto.SerializeToString())
    for name in ("a.npz", "a.pb"):
        again = read(TEXT, tmp_path / name)
        assert again.dtype == object
        assert again.tolist() == ["\u00e9", ""]


@pytest.mark.parametrize(
    ("arrays", "cause"),
    [
        ({"x": ARRAY.astype(np.float64)}, "'x' is float64, the model wants float32"),
        ({"x": ARRAY.astype(np.float16)}, "'x' is float16, the model wants float32"),
        ({"x": np.array([["a", "b"]])}, "'x' is string, the model wants float32"),
        ({"x": ARRAY, "z": ARRAY}, "'z' is not of the model, which has 'x'"),
        ({}, "lacks 'x'"),
        ({"x": ARRAY.T}, "dimension 1 has to be 2"),
        ({"x": ARRAY[0]}, "2 dimensions are needed, 1 were given"),
    ],
)
def test_what_does_not_fit_the_model_is_refused(
    tmp_path: Path, arrays: dict[str, Any], cause: str
) -> None:
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(UserInputError, match=cause):
        read(X, tmp_path / "a.npz")


def test_tensors_must_have_the_shape_asked_for(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=ARRAY)
    with pytest.raises(UserInputError, match="is 3x2, but --shapes says 4x2"):
        read(X, tmp_path / "a.npz", x=(4, 2))


def test_python_objects_are_never_unpickled(tmp_path: Path) -> None:
    array = np.array([{"a": 1}, None], object)
    np.savez(tmp_path / "a.npz", x=array)
    np.save(tmp_path / "a.npy", array)
    for given in (tmp_path / "a.npz", ("x", tmp_path / "a.npy")):
        with pytest.raises(UserInputError, match=r"unpickled; save text with astype\(str\)"):
            read(TEXT, given)


def test_files_that_do_not_say_their_tensor_are_asked_for_a_name(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", ARRAY)
    with pytest.raises(UserInputError, match="does not say which tensor it is; give it as x:"):
        read(X, tmp_path / "x.npy")
    np.savez(tmp_path / "x.npz", x=ARRAY)
    with pytest.raises(UserInputError, match=r"an \.npz names its tensors itself"):
        read(X, ("x", tmp_path / "x.npz"))


def test_a_tensor_given_twice_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", ARRAY)
    np.savez(tmp_path / "x.npz", x=ARRAY)
    with pytest.raises(UserInputError, match="'x' is given twice"):
        read(X, tmp_path / "x.npz", ("x", tmp_path / "x.npy"))


def test_damaged_files_are_refused_in_one_line(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=ARRAY)
    np.save(tmp_path / "a.npy", ARRAY)
    proto = numpy_helper.from_array(ARRAY, "x")
    proto.dims[0] = 1 << 40
    (tmp_path / "a.pb").write_bytes(proto.SerializeToString())
    (tmp_path / "b.pb").write_bytes(b"\xff" * 9)
    external = TensorProto(name="x", data_type=1, dims=[2])
    external.data_location = TensorProto.EXTERNAL
    (tmp_path / "c.pb").write_bytes(external.SerializeToString())
    (tmp_path / "a.npz").write_bytes((tmp_path / "a.npz").read_bytes()[:-60])
    whole = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "a.npy").write_bytes(whole[:-1])
    (tmp_path / "v3.npy").write_bytes(whole[:6] + b"\x03" + whole[7:])
    named = [("x", tmp_path / name) for name in ("a.npy", "v3.npy", "a.pb")]
    alone = [tmp_path / name for name in ("a.npz", "a.pb", "b.pb", "c.pb")]
    for given in (*map(source, named), *map(source, alone)):
        with pytest.raises(UserInputError) as caught:
            read_inputs(model(X), given, {})
        assert "\n" not in str(caught.value)


def test_outputs_must_be_complete_and_of_the_declared_type(tmp_path: Path) -> None:
    outputs = (TensorSpec("y", "float32", ("N", 1)), TensorSpec("z", "unknown", None))
    spec, resolved = model(outputs=outputs), ResolvedShapes({}, (), {"N": 3})
    np.savez(tmp_path / "a.npz", z=np.arange(2), y=ARRAY)
    tensors = read_outputs(spec, source(tmp_path / "a.npz"), resolved)
    assert list(tensors) == ["y", "z"]
    assert tensors["y"].shape == (3, 2)  # exporters declare wrong shapes; the data counts
    np.savez(tmp_path / "b.npz", y=ARRAY)
    with pytest.raises(UserInputError, match="lacks 'z'"):
        read_outputs(spec, source(tmp_path / "b.npz"), resolved)


def test_a_dumped_output_needs_a_known_shape(tmp_path: Path) -> None:
    ARRAY[:, 0].tofile(tmp_path / "y.bin")
    known = model(outputs=(TensorSpec("y", "float32", ("N", 1)),))
    open_size = model(outputs=(TensorSpec("y", "float32", ("M", 1)),))
    given, resolved = source(("y", tmp_path / "y.bin")), ResolvedShapes({}, (), {"N": 3})
    assert read_outputs(known, given, resolved)["y"].tolist() == [[0], [2], [4]]
    with pytest.raises(UserInputError, match="does not say the shape of output 'y'"):
        read_outputs(open_size, given, resolved)
