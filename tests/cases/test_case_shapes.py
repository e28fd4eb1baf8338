"""O10 to O12: sizes and names, as a user of the command sees them."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

import numpy as np
import pytest

from smart_tuner.model.names import format_name

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

    from tests.cases.conftest import Product

EXACT = ("--metric=linf", "--epsilon=0")


def losses_of(trial: dict[str, object]) -> dict[str, float]:
    rows = trial["losses"]
    assert isinstance(rows, list)
    return {row["output"]: row["loss"] for row in rows}


def test_o10_an_empty_output_equals_an_empty_one(cases: Path, product: Product) -> None:
    trial = product.apply(cases / "O10/a_empty_slice.onnx", *EXACT)
    assert losses_of(trial) == {"y": 0, "s": 0}


def test_o10_a_static_size_of_zero_is_kept(cases: Path, product: Product) -> None:
    trial = product.apply(cases / "O10/b_static_zero_dim.onnx", *EXACT)
    assert trial["engine"]["request"]["shapes"] == [{"x": [0, 4]}]
    assert losses_of(trial) == {"y": 0}


def test_o10_scalars_stay_scalars(cases: Path, product: Product, tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", x=np.array([1, 2, 3], np.float32), s=np.float32(0.5))
    np.savez(tmp_path / "out.npz", y=np.float32(3))
    words = ("--inputs", tmp_path / "in.npz", "--outputs", tmp_path / "out.npz")
    trial = product.apply(cases / "O10/c_scalars.onnx", *words, *EXACT)
    assert trial["engine"]["request"]["shapes"] == [{"x": [3], "s": []}]
    assert losses_of(trial) == {"y": 0}
    np.savez(tmp_path / "out.npz", y=np.array([3], np.float32))
    text = product.refuse(cases / "O10/c_scalars.onnx", *words, *EXACT)
    assert "output 'y'" in text
    assert "shape () where the reference has (1,)" in text


def test_o10_an_output_may_turn_out_empty(cases: Path, product: Product, tmp_path: Path) -> None:
    model = cases / "O10/d_data_dependent_shape.onnx"
    np.savez(tmp_path / "hits.npz", x=np.array([0, 1, 0, 2], np.float32))
    words = ("--inputs", model.with_suffix(".inputs.npz"), "--inputs", tmp_path / "hits.npz")
    trial = product.apply(model, *words)
    assert [(loss["output"], loss["loss"]) for loss in trial["losses"]] == [("y", 0), ("y", 0)]


def test_o11_every_hostile_name_gets_its_shape_and_its_values(
    cases: Path, case_tools: ModuleType, product: Product, tmp_path: Path
) -> None:
    names = case_tools.HOSTILE_NAMES
    shapes = ",".join(f"{format_name(name)}:3x2" for name in names)
    trial = product.apply(cases / "O11/names.onnx", f"--shapes={shapes}", *EXACT)
    assert trial["engine"]["request"]["shapes"] == [{name: [3, 2] for name in names}]
    files = []
    for number, name in enumerate(names):
        np.save(tmp_path / f"{number}.npy", np.full((1, 2), 2.0**number, np.float32))
        files.append(f"{format_name(name)}:{tmp_path}/{number}.npy")
    np.save(tmp_path / "sum.npy", np.full((1, 2), 2.0 ** len(names) - 1, np.float32))
    words = (f"--inputs={','.join(files)}", f"--outputs=s:8/out:{tmp_path}/sum.npy")
    trial = product.apply(cases / "O11/names.onnx", *words, *EXACT)
    assert losses_of(trial) == {"s:8/out": 0}


def test_o11_a_hostile_path_reaches_child_engine_and_loader(
    cases: Path, product: Product, tmp_path: Path
) -> None:
    [model] = (cases / "O11/dir with space").glob("*.onnx")
    out = tmp_path / "out [a|b] $HOME 'q'"
    trial = product.apply(model, "--out", out)
    assert trial["engine"]["request"]["model"] == str(model)
    spec = importlib.util.spec_from_file_location("load_winner", out / "load_winner.py")
    assert spec is not None
    assert spec.loader is not None
    loader = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loader)
    [y] = loader.load().run(None, {"x": np.ones((2, 4), np.float32)})
    assert y.shape == (2, 3)


def test_o12_open_sizes_are_asked_for(cases: Path, product: Product) -> None:
    text = product.refuse(cases / "O12/a_dynamic.onnx")
    assert "give --shapes x:1x3xHxW with numbers in place of H, W." in text
    text = product.refuse(cases / "O12/d_unknown_rank.onnx")
    assert "give --shapes x:AxBxC" in text


@pytest.mark.parametrize(
    ("name", "given", "shapes"),
    [
        ("d_unknown_rank", "x:2x3", {"x": [2, 3]}),
        ("b_shared_symbol", "a:5x8", {"a": [5, 8], "b": [5, 8]}),
        ("c_multiple_of_12", "x:24", {"x": [24]}),
    ],
)
def test_o12_given_sizes_are_used(
    cases: Path, product: Product, name: str, given: str, shapes: dict[str, list[int]]
) -> None:
    trial = product.apply(cases / f"O12/{name}.onnx", "--shapes", given)
    assert trial["outcome"] == "feasible"
    assert trial["engine"]["request"]["shapes"] == [shapes]


def test_o12_a_first_size_taken_as_one_is_said(cases: Path, product: Product) -> None:
    trial = product.apply(cases / "O12/e_minus_one_dim.onnx")
    assert trial["engine"]["request"]["shapes"] == [{"x": [1, 4]}]
    assert "first dimension taken as 1 (batch); give --shapes x:1x4" in trial["notes"]


def test_o12_a_size_that_cannot_run_ends_in_give_shapes(cases: Path, product: Product) -> None:
    text = product.refuse(cases / "O12/c_multiple_of_12.onnx")
    assert "cannot be reshaped" in text
    assert "sizes in use: x:1; give --shapes if the model needs others" in text
