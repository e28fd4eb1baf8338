"""Public cases as far as the model package decides them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnx
import pytest

from smart_tuner.errors import ModelError, UserInputError
from smart_tuner.model.declared import declared_inputs
from smart_tuner.model.external import external_files
from smart_tuner.model.load import load_model
from smart_tuner.model.names import format_name
from smart_tuner.model.prepare import InputOptions, prepare_workload
from smart_tuner.model.shapes import parse_shapes, resolve_shapes
from smart_tuner.model.tensors import load_tensors, save_tensors

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType


def inputs_of(file: Path, folder: Path, **options: object) -> dict[str, np.ndarray]:
    model = load_model(file)
    workload, _ = prepare_workload(model, InputOptions(**options), folder)  # type: ignore[arg-type]
    return load_tensors(workload.points[0].pairs[0].inputs)


def refusal(file: Path) -> str:
    with pytest.raises(ModelError) as caught:
        load_model(file)
    text = str(caught.value)
    assert text.startswith(str(file))
    assert "\n" not in text
    return text


def test_o01_data_beside_the_model_is_found_from_anywhere(
    cases: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    spec = load_model(cases / "O01/rel/model.onnx")
    files = [cases / "O01/rel" / name for name in ("model.onnx", "weights.bin")]
    assert spec.size_bytes == sum(file.stat().st_size for file in files)


def test_o01_missing_and_short_data_are_named(cases: Path) -> None:
    assert "'weights.bin' is missing" in refusal(cases / "O01/missing/model.onnx")
    text = refusal(cases / "O01/short/model.onnx")
    assert "'weights.bin' is too short: 48 bytes needed, 7 found" in text


def test_o01_more_than_2_gib_of_weights_are_checked_and_never_loaded(
    case_tools: ModuleType, tmp_path: Path
) -> None:
    # Without the digest: hashing 2.3 GB takes as long as all other tests here together.
    case_tools.big_table(case_tools.Folder(tmp_path))
    path = tmp_path / "O01/big/model.onnx"
    model = onnx.load(path, load_external_data=False)
    [data] = external_files(model, path)
    assert data.stat().st_size > 1 << 31
    assert [tensor.name for tensor in declared_inputs(model.graph, path)] == ["ids"]
    with data.open("r+b") as file:
        file.truncate(1 << 31)
    with pytest.raises(ModelError, match="2304000000 bytes needed, 2147483648 found"):
        load_model(path)


def test_o02_weights_among_the_inputs_are_not_asked_for(cases: Path, tmp_path: Path) -> None:
    spec = load_model(cases / "O02/init_as_input.onnx")
    assert [tensor.name for tensor in spec.inputs] == ["x"]
    assert any("'b', 'w'" in note and "speed" in note for note in spec.notes)
    assert list(inputs_of(spec.path, tmp_path)) == ["x"]


def test_o03_unsorted_nodes_are_taken_and_said(cases: Path) -> None:
    spec = load_model(cases / "O03/unsorted.onnx")
    assert any("not sorted ('m'" in note for note in spec.notes)


def test_o04_a_doubled_node_name_is_said_and_no_node_is_lost(cases: Path) -> None:
    spec = load_model(cases / "O04/dup_node_names.onnx")
    assert any("('n')" in note for note in spec.notes)
    assert spec.operators == {"Abs": 1, "Neg": 1, "Relu": 1}


def test_o04_a_doubled_tensor_is_refused_by_name(cases: Path) -> None:
    assert "tensor 'a' is given more than once" in refusal(cases / "O04/dup_tensor_names.onnx")


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("a_dummy", "is a text file"),
        ("b_empty", "the file is empty"),
        ("c_truncated", "cut short"),
        ("d_lfs_pointer", "looks like a Git LFS pointer: run `git lfs pull`"),
        ("e_zip", "is a zip archive"),
    ],
)
def test_o07_what_is_no_model_is_refused_with_its_kind(cases: Path, name: str, cause: str) -> None:
    assert cause in refusal(cases / f"O07/{name}.onnx")


def test_o08_degenerate_graphs(cases: Path, tmp_path: Path) -> None:
    both = load_model(cases / "O08/a_input_is_output.onnx")
    assert [tensor.name for tensor in both.outputs] == ["x", "y"]
    empty = load_model(cases / "O08/b_no_nodes.onnx")
    assert any("nothing to tune" in note for note in empty.notes)
    assert "no outputs" in refusal(cases / "O08/c_no_outputs.onnx")
    for file in ("d_constant_output_no_inputs", "e_no_inputs"):
        assert inputs_of(cases / f"O08/{file}.onnx", tmp_path / file) == {}


def test_o08_inputs_that_do_not_exist_are_not_called_synthetic(
    cases: Path, tmp_path: Path
) -> None:
    model = load_model(cases / "O08/e_no_inputs.onnx")
    workload, notes = prepare_workload(model, InputOptions(), tmp_path)
    assert not workload.points[0].synthetic
    assert not notes


def test_o10_zero_and_no_dimensions_are_sizes(cases: Path, tmp_path: Path) -> None:
    zero = inputs_of(cases / "O10/b_static_zero_dim.onnx", tmp_path / "b")
    assert zero["x"].shape == (0, 4)
    scalars = inputs_of(cases / "O10/c_scalars.onnx", tmp_path / "c")
    assert {name: array.shape for name, array in scalars.items()} == {"x": (3,), "s": ()}
    dependent = load_model(cases / "O10/d_data_dependent_shape.onnx")
    assert dependent.outputs[0].shape == (1, "nz")


def test_o11_every_name_can_be_given_a_shape_and_is_kept_in_files(
    cases: Path, case_tools: ModuleType, tmp_path: Path
) -> None:
    model = load_model(cases / "O11/names.onnx")
    texts = [f"{format_name(name)}:3x2" for name in case_tools.HOSTILE_NAMES]
    shapes = parse_shapes(texts)
    assert parse_shapes([",".join(texts)]) == shapes
    assert list(shapes) == list(case_tools.HOSTILE_NAMES)
    tensors = inputs_of(model.path, tmp_path, shapes=shapes)
    assert {name: array.shape for name, array in tensors.items()} == shapes


def test_o11_a_hostile_path_is_kept_as_it_is(cases: Path) -> None:
    [file] = (cases / "O11/dir with space").glob("*.onnx")
    assert load_model(file).path == file


def test_o12_free_sizes_are_asked_for_with_what_to_type(cases: Path) -> None:
    with pytest.raises(UserInputError, match="--shapes x:1x3xHxW with numbers in place of H, W"):
        resolve_shapes(load_model(cases / "O12/a_dynamic.onnx"), {})
    with pytest.raises(UserInputError, match="--shapes x:AxBxC"):
        resolve_shapes(load_model(cases / "O12/d_unknown_rank.onnx"), {})


def test_o12_a_free_first_size_is_taken_as_one_loudly(cases: Path) -> None:
    for name in ("c_multiple_of_12", "e_minus_one_dim"):
        resolved = resolve_shapes(load_model(cases / f"O12/{name}.onnx"), {})
        assert resolved.shapes["x"][0] == 1
        assert "--shapes x:1" in resolved.notes[0]


def test_o12_a_shared_symbol_gets_one_size(cases: Path) -> None:
    model = load_model(cases / "O12/b_shared_symbol.onnx")
    assert resolve_shapes(model, {"a": (5, 8)}).shapes == {"a": (5, 8), "b": (5, 8)}
    with pytest.raises(UserInputError, match="give equal sizes"):
        resolve_shapes(model, {"a": (5, 8), "b": (6, 8)})


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("a_bf16", "bfloat16"),
        ("b_fp8e4m3", "float8_e4m3fn"),
        ("c_fp8e5m2", "float8_e5m2"),
        ("d_fp16", "float16"),
        ("e_int4", "int4"),
        ("f_uint8", "uint8"),
        ("g_double", "float64"),
    ],
)
def test_o13_every_type_is_named_made_and_kept(
    cases: Path, tmp_path: Path, name: str, dtype: str
) -> None:
    model = load_model(cases / f"O13/{name}.onnx")
    assert (model.inputs[0].dtype, model.outputs[0].dtype) == (dtype, dtype)
    [made] = inputs_of(model.path, tmp_path).values()
    assert made.dtype.name == dtype


def test_o14_text_goes_in_and_out_unchanged(cases: Path, tmp_path: Path) -> None:
    file = cases / "O14/a_string_io.onnx"
    given = inputs_of(file, tmp_path, inputs=(str(file.with_suffix(".inputs.npz")),))
    assert given["x"].dtype == object
    assert given["x"].tolist() == ["a", "\u00e9", ""]
    assert load_model(cases / "O14/b_string_output.onnx").outputs[0].dtype == "string"


def test_o15_inputs_are_bound_by_name(cases: Path, tmp_path: Path) -> None:
    file = cases / "O15/order_and_unused_input.onnx"
    given = inputs_of(file, tmp_path, inputs=(str(file.with_suffix(".inputs.npz")),))
    assert {name: array.flat[0] for name, array in given.items()} == {
        "a": 1,
        "b": 2,
        "c": 3,
        "unused_mask": 0,
    }
    shuffled = {name: given[name] for name in sorted(given)}
    save_tensors(tmp_path / "shuffled", shuffled)
    again = inputs_of(file, tmp_path / "again", inputs=(str(tmp_path / "shuffled"),))
    assert list(again) == ["c", "unused_mask", "a", "b"]
    np.testing.assert_array_equal(again["b"], given["b"])
