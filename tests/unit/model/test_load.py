from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from smart_tuner.errors import ModelError
from smart_tuner.model.load import load_model
from smart_tuner.model.spec import TensorSpec

if TYPE_CHECKING:
    from pathlib import Path

FLOAT = TensorProto.FLOAT


def tensor(name: str, shape: Any = (2,), kind: int = FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def save(folder: Path, nodes: Any, inputs: Any, outputs: Any, **more: Any) -> Path:
    graph = helper.make_graph(nodes, "g", inputs, outputs, more.pop("weights", []))
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10, **more)
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def relu(folder: Path, **more: Any) -> Path:
    return save(
        folder, [helper.make_node("Relu", ["x"], ["y"])], [tensor("x")], [tensor("y")], **more
    )


def external(folder: Path, location: str, **entries: str) -> Path:
    weight = TensorProto(name="w", data_type=FLOAT, dims=[2])
    weight.data_location = TensorProto.EXTERNAL
    for key, text in {"location": location, **entries}.items():
        weight.external_data.add(key=key, value=text)
    add = helper.make_node("Add", ["x", "w"], ["y"])
    return save(folder, [add], [tensor("x")], [tensor("y")], weights=[weight])


def test_a_plain_model_is_described(tmp_path: Path) -> None:
    path = relu(tmp_path)
    spec = load_model(path)
    assert spec.path == path
    assert spec.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert spec.size_bytes == path.stat().st_size
    assert spec.inputs == (TensorSpec("x", "float32", (2,)),)
    assert spec.outputs == (TensorSpec("y", "float32", (2,)),)
    assert spec.ir_version == 10
    assert spec.opsets == {"": 17, "own": 1}
    assert spec.operators == {"Relu": 1}
    assert spec.notes == ()


def test_a_relative_path_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = relu(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert load_model(path.relative_to(tmp_path)).path == path


def test_operators_are_counted_in_subgraphs_and_functions(tmp_path: Path) -> None:
    inner = helper.make_node("Abs", ["x"], ["t"])
    branch = helper.make_graph([inner], "branch", [], [tensor("t")])
    nodes = [
        helper.make_node("If", ["c"], ["a"], then_branch=branch, else_branch=branch),
        helper.make_node("Twice", ["a"], ["y"], domain="own"),
    ]
    body = helper.make_function(
        "own",
        "Twice",
        ["i"],
        ["o"],
        [helper.make_node("Add", ["i", "i"], ["o"])],
        [helper.make_opsetid("", 17)],
    )
    inputs = [tensor("c", (), TensorProto.BOOL), tensor("x")]
    spec = load_model(save(tmp_path, nodes, inputs, [tensor("y")], functions=[body]))
    assert spec.operators == {"Abs": 2, "Add": 1, "If": 1, "own::Twice": 1}
    assert spec.notes == ()


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (("N", 0, None, -1), ("N", 0, None, None)),
        (("?", "", "  ", "None"), (None, None, None, None)),
        (("batch size", "a", "a", 3), ("batch size", "a", "a", 3)),
        ((), ()),
        (None, None),
    ],
)
def test_dimensions_are_sizes_symbols_or_unknown(
    tmp_path: Path, shape: Any, expected: Any
) -> None:
    node = helper.make_node("Relu", ["x"], ["y"])
    spec = load_model(save(tmp_path, [node], [tensor("x", shape)], [tensor("y", shape)]))
    assert spec.inputs[0].shape == expected


def test_only_numbers_make_a_shape_static() -> None:
    assert TensorSpec("x", "float32", (0, 2)).is_static
    assert TensorSpec("x", "float32", ()).is_static
    assert not TensorSpec("x", "float32", ("N",)).is_static
    assert not TensorSpec("x", "float32", None).is_static


def test_an_output_without_a_type_is_left_to_the_runtime(tmp_path: Path) -> None:
    node = helper.make_node("Relu", ["x"], ["y"])
    spec = load_model(save(tmp_path, [node], [tensor("x")], [onnx.ValueInfoProto(name="y")]))
    assert spec.outputs == (TensorSpec("y", "unknown", None),)


def test_a_doubled_output_is_kept_once(tmp_path: Path) -> None:
    node = helper.make_node("Relu", ["x"], ["y"])
    spec = load_model(save(tmp_path, [node], [tensor("x")], [tensor("y"), tensor("y")]))
    assert len(spec.outputs) == 1
    assert "compared once" in spec.notes[0]


def test_the_digest_covers_external_data(tmp_path: Path) -> None:
    path = external(tmp_path, "w.bin", offset="4", length="8")
    (tmp_path / "w.bin").write_bytes(bytes(12))
    before = load_model(path)
    assert before.size_bytes == path.stat().st_size + 12
    (tmp_path / "w.bin").write_bytes(bytes(11) + b"\1")
    assert load_model(path).sha256 != before.sha256


def test_external_data_without_a_length_is_sized_by_its_type(tmp_path: Path) -> None:
    path = external(tmp_path, "w.bin", offset="4")
    (tmp_path / "w.bin").write_bytes(bytes(11))
    with pytest.raises(ModelError, match=r"'w\.bin' is too short: 12 bytes needed, 11 found"):
        load_model(path)


@pytest.mark.parametrize("location", ["../w.bin", "sub/../../w.bin"])
def test_external_data_outside_the_folder_is_refused(tmp_path: Path, location: str) -> None:
    home = tmp_path / "home"
    (home / "sub").mkdir(parents=True)
    (tmp_path / "w.bin").write_bytes(bytes(8))
    with pytest.raises(ModelError, match="lies outside the model's folder"):
        load_model(external(home, location))


def test_absolute_and_linked_external_data_is_refused(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "w.bin").write_bytes(bytes(8))
    with pytest.raises(ModelError, match="lies outside"):
        load_model(external(home, str(tmp_path / "w.bin")))
    (home / "link.bin").symlink_to(tmp_path / "w.bin")
    with pytest.raises(ModelError, match="lies outside"):
        load_model(external(home, "link.bin"))


def test_a_download_cache_that_links_model_and_data_works(tmp_path: Path) -> None:
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshot"
    blobs.mkdir()
    snapshot.mkdir()
    external(blobs, "w.bin").rename(blobs / "1")
    (blobs / "2").write_bytes(bytes(8))
    (snapshot / "model.onnx").symlink_to("../blobs/1")
    (snapshot / "w.bin").symlink_to("../blobs/2")
    assert load_model(snapshot / "model.onnx").path == snapshot / "model.onnx"


@pytest.mark.parametrize("entries", [{"offset": "x"}, {"offset": "-1"}, {"length": "-4"}])
def test_senseless_external_data_is_refused(tmp_path: Path, entries: dict[str, str]) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(8))
    with pytest.raises(ModelError, match="does not say where its data lies"):
        load_model(external(tmp_path, "w.bin", **entries))


def test_files_of_another_kind_are_named(tmp_path: Path) -> None:
    for name, data, cause in (
        ("a.gz", b"\x1f\x8b\x08\0rest", "gzip-compressed"),
        ("a.ort", b"\x10\0\0\0ORTM\0\0", "ORT format"),
        ("a.bin", bytes(range(256)), "not an ONNX model, or was cut short"),
    ):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(ModelError, match=cause):
            load_model(tmp_path / name)
    with pytest.raises(ModelError, match="no such file"):
        load_model(tmp_path / "nothing.onnx")
    with pytest.raises(ModelError, match="is a folder"):
        load_model(tmp_path)


def test_a_file_cut_between_fields_is_noticed(tmp_path: Path) -> None:
    path = relu(tmp_path)
    model = onnx.load(path)
    del model.opset_import[:]
    path.write_bytes(model.SerializeToString())
    with pytest.raises(ModelError, match="names no operator set"):
        load_model(path)
    model.ClearField("graph")
    path.write_bytes(model.SerializeToString())
    with pytest.raises(ModelError, match="not an ONNX model"):
        load_model(path)


def test_every_cut_of_a_model_is_refused_or_loads(tmp_path: Path) -> None:
    whole = relu(tmp_path).read_bytes()
    cut = tmp_path / "cut.onnx"
    for length in range(len(whole)):
        cut.write_bytes(whole[:length])
        try:
            load_model(cut)
        except ModelError as error:
            assert "\n" not in str(error)  # noqa: PT017


def test_an_output_that_nothing_gives_is_refused(tmp_path: Path) -> None:
    node = helper.make_node("Relu", ["x"], ["y"])
    with pytest.raises(ModelError, match="output 'z' is given by no node"):
        load_model(save(tmp_path, [node], [tensor("x")], [tensor("z")]))


@pytest.mark.parametrize("place", ["input", "weight", "weight twice", "input twice"])
def test_every_way_of_giving_a_tensor_twice_is_refused(tmp_path: Path, place: str) -> None:
    inputs, weights = [tensor("x")], []
    made = {"input": "x", "weight": "w"}.get(place, "y")
    weight = numpy_helper.from_array(np.ones(2, np.float32), "w")
    if place.startswith("weight"):
        weights = [weight] * (2 if place.endswith("twice") else 1)
    if place == "input twice":
        inputs *= 2
    nodes = [helper.make_node("Neg", ["x"], [made])]
    if made != "y":
        nodes.append(helper.make_node("Abs", [made], ["y"]))
    with pytest.raises(ModelError, match="is given more than once"):
        load_model(save(tmp_path, nodes, inputs, [tensor("y")], weights=weights))


def test_inputs_that_are_no_tensors_are_refused(tmp_path: Path) -> None:
    sequence = helper.make_tensor_sequence_value_info("x", FLOAT, None)
    node = helper.make_node("ConcatFromSequence", ["x"], ["y"], axis=0)
    with pytest.raises(ModelError, match="input 'x' is a sequence"):
        load_model(save(tmp_path, [node], [sequence], [tensor("y")]))
    untyped = onnx.ValueInfoProto(name="x")
    with pytest.raises(ModelError, match="input 'x' has element type 0"):
        load_model(save(tmp_path, [node], [untyped], [tensor("y")]))


def test_a_tensor_used_too_early_inside_a_branch_is_unsorted(tmp_path: Path) -> None:
    branch = helper.make_graph([helper.make_node("Abs", ["late"], ["t"])], "b", [], [tensor("t")])
    nodes = [
        helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch),
        helper.make_node("Neg", ["x"], ["late"]),
    ]
    inputs = [tensor("c", (), TensorProto.BOOL), tensor("x")]
    spec = load_model(save(tmp_path, nodes, inputs, [tensor("y")]))
    assert "'late' is used before it is made" in spec.notes[0]


def test_packed_types_count_half_a_byte(tmp_path: Path) -> None:
    weight = TensorProto(name="w", data_type=TensorProto.INT4, dims=[3])
    weight.data_location = TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="w.bin")
    (tmp_path / "w.bin").write_bytes(bytes(2))
    node = helper.make_node("Relu", ["x"], ["y"])
    path = save(tmp_path, [node], [tensor("x")], [tensor("y")], weights=[weight])
    assert load_model(path).size_bytes == path.stat().st_size + 2
