"""O01 to O09: models and their files, as a user of the command sees them."""

from __future__ import annotations

import os
import re
import resource
from typing import TYPE_CHECKING

import numpy as np
import onnx
import pytest

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

    from tests.cases.conftest import Product

LARGEST_CHILD_KB = 1_000_000


def gemm_pair(model: Path, folder: Path) -> tuple[str | Path, ...]:
    """Inputs and trusted outputs of a model of the gemm family, calculated with numpy."""
    [weight] = onnx.load(model).graph.initializer
    x = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)
    y = np.maximum(x @ onnx.numpy_helper.to_array(weight, str(model.parent)), 0)
    np.savez(folder / "inputs.npz", x=x)
    np.savez(folder / "outputs.npz", y=y)
    return "--inputs", folder / "inputs.npz", "--outputs", folder / "outputs.npz"


def test_o01_data_beside_the_model_is_found_from_any_folder(
    cases: Path, product: Product, tmp_path: Path
) -> None:
    model = cases / "O01/rel/model.onnx"
    (tmp_path / "elsewhere").mkdir()
    relative = os.path.relpath(model, tmp_path / "elsewhere")
    words = gemm_pair(model, tmp_path)
    trial = product.apply(relative, *words, cwd=tmp_path / "elsewhere")  # type: ignore[arg-type]
    assert trial["outcome"] == "feasible"
    assert model.samefile(trial["engine"]["request"]["model"])
    assert not list((tmp_path / "elsewhere").iterdir())


def test_o01_missing_and_short_data_are_named(cases: Path, product: Product) -> None:
    text = product.refuse(cases / "O01/missing/model.onnx")
    assert "'weights.bin' is missing" in text
    text = product.refuse(cases / "O01/short/model.onnx")
    assert "'weights.bin' is too short: 48 bytes needed, 7 found" in text


@pytest.mark.timeout(240)
def test_o01_more_than_2_gib_are_tried_without_a_copy_in_memory_or_on_disk(
    case_tools: ModuleType, product: Product, tmp_path: Path
) -> None:
    case_tools.big_table(case_tools.Folder(tmp_path))
    model = tmp_path / "O01/big/model.onnx"
    inputs = model.with_suffix(".inputs.npz")
    trial = product.apply(model, "--inputs", inputs, "--out", tmp_path / "engine")
    assert trial["outcome"] == "feasible"
    assert all(file.stat().st_size < 1 << 20 for file in (tmp_path / "engine").iterdir())
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < LARGEST_CHILD_KB
    (model.parent / "table.bin").unlink()


def test_o02_weights_among_the_inputs_are_not_fed(cases: Path, product: Product) -> None:
    trial = product.apply(cases / "O02/init_as_input.onnx")
    assert trial["outcome"] == "feasible"
    assert trial["engine"]["request"]["shapes"] == [{"x": [2, 4]}]
    assert "'b', 'w'" in trial["notes"]
    assert "costs speed" in trial["notes"]


def test_o03_unsorted_nodes_are_taken_and_said(
    cases: Path, product: Product, tmp_path: Path
) -> None:
    model = cases / "O03/unsorted.onnx"
    trial = product.apply(model, *gemm_pair(model, tmp_path))
    assert trial["outcome"] == "feasible"
    assert "not sorted" in trial["notes"]


def test_o04_doubled_names_are_named(cases: Path, product: Product) -> None:
    assert "same node name (n)" in product.refuse(cases / "O04/dup_node_names.onnx")
    text = product.refuse(cases / "O04/dup_tensor_names.onnx")
    assert "tensor 'a' is given more than once" in text


def test_o05_too_new_versions_are_told_with_the_supported_ones(
    cases: Path, product: Product
) -> None:
    text = product.refuse(cases / "O05/ir_too_new.onnx")
    assert re.search(r"IR version 99, onnxruntime \S+ reads up to \d+;", text)
    text = product.refuse(cases / "O05/opset_too_new.onnx")
    assert re.search(r"opset 999 of domain ai.onnx, onnxruntime \S+ knows up to \d+;", text)


def test_o05_the_newest_versions_of_the_onnx_package_work_or_are_told(
    cases: Path, product: Product
) -> None:
    run = product.run("apply", cases / "O05/newest_of_onnx_package.onnx")
    if run.code:  # an older runtime than the onnx package
        assert "update onnxruntime" in run.complaint
    else:
        assert "outcome: ok" in run.out


def test_o06_a_custom_operator_is_named_with_the_way_to_give_its_library(
    cases: Path, product: Product
) -> None:
    text = product.refuse(cases / "O06/custom_op.onnx")
    assert "my.ops::Foo" in text
    assert "--base file: custom_op_library = /path/to/library" in text


def test_o06_a_custom_operator_library_reaches_the_children(
    cases: Path, product: Product, tmp_path: Path
) -> None:
    (tmp_path / "ops.so").write_text("no library")
    (tmp_path / "base.toml").write_text(f'custom_op_library = "{tmp_path}/ops.so"\n')
    text = product.refuse(cases / "O06/custom_op.onnx", "--base", tmp_path / "base.toml")
    assert f"Failed to load library {tmp_path}/ops.so" in text


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("a_dummy", "is a text file, not an ONNX model"),
        ("b_empty", "the file is empty"),
        ("c_truncated", "cut short"),
        ("d_lfs_pointer", "looks like a Git LFS pointer"),
        ("e_zip", "is a zip archive"),
    ],
)
def test_o07_what_is_no_model_is_refused(
    cases: Path, product: Product, name: str, cause: str
) -> None:
    text = product.refuse(cases / f"O07/{name}.onnx")
    assert text.startswith(f"{cases / f'O07/{name}.onnx'}: ")
    assert cause in text


def test_o08_an_input_that_is_an_output_too_is_compared(cases: Path, product: Product) -> None:
    trial = product.apply(cases / "O08/a_input_is_output.onnx", "--metric=linf", "--epsilon=0")
    assert trial["outcome"] == "feasible"
    assert {loss["output"]: loss["loss"] for loss in trial["losses"]} == {"x": 0, "y": 0}


def test_o08_a_graph_without_nodes_says_that_there_is_nothing_to_tune(
    cases: Path, product: Product
) -> None:
    trial = product.apply(cases / "O08/b_no_nodes.onnx", "--route=-execution_mode=parallel")
    assert trial["outcome"] == "feasible"
    assert "nothing to tune" in trial["notes"]
    [measured] = trial["comparisons"]
    assert measured["baseline"]["median_ms"] > 0


def test_o08_no_outputs_are_refused(cases: Path, product: Product) -> None:
    text = product.refuse(cases / "O08/c_no_outputs.onnx")
    assert "no outputs, and accuracy over zero outputs proves nothing" in text


@pytest.mark.parametrize("name", ["d_constant_output_no_inputs", "e_no_inputs"])
def test_o08_no_inputs_are_legal(cases: Path, product: Product, name: str) -> None:
    trial = product.apply(cases / f"O08/{name}.onnx")
    assert trial["outcome"] == "feasible"
    assert "synthetic" not in trial["notes"]


def test_o09_both_branches_of_different_rank_are_judged(
    cases: Path, product: Product, tmp_path: Path
) -> None:
    words: list[str | Path] = []
    x = np.array([[1, -2, 3], [-4, 5, -6]], np.float32)
    for name, c, y in (("then", True, np.maximum(x, 0)), ("else", False, x[:, None])):
        np.savez(tmp_path / f"{name}.npz", c=np.array(c), x=x)
        np.savez(tmp_path / f"{name}.out.npz", y=y)
        words += ["--inputs", tmp_path / f"{name}.npz", "--outputs", tmp_path / f"{name}.out.npz"]
    trial = product.apply(cases / "O09/if_two_ranks.onnx", *words)
    assert trial["outcome"] == "feasible"
    assert [loss["pair"] for loss in trial["losses"]] == ["then", "else"]
