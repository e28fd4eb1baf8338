"""O13 to O16: element types and values, as a user of the command sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np
import pytest

from smart_tuner.model.tensors import save_tensors

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cases.conftest import Product

EXACT = ("--metric=linf", "--epsilon=0")
OTHER_ROUTE = "--route=-session:enable_mem_pattern=off"
BIG = 2**53 + 1


def pair(folder: Path, inputs: dict[str, np.ndarray], **outputs: np.ndarray) -> list[str | Path]:
    """Files of inputs and trusted outputs, as options."""
    save_tensors(folder / "pair.in", inputs)
    save_tensors(folder / "pair.out", outputs)
    return ["--inputs", folder / "pair.in", "--outputs", folder / "pair.out"]


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("a_bf16", ml_dtypes.bfloat16),
        ("b_fp8e4m3", ml_dtypes.float8_e4m3fn),
        ("c_fp8e5m2", ml_dtypes.float8_e5m2),
        ("d_fp16", np.float16),
        ("e_int4", ml_dtypes.int4),
        ("f_uint8", np.uint8),
        ("g_double", np.float64),
    ],
)
def test_o13_every_type_is_fed_read_and_judged_bit_by_bit(
    cases: Path, product: Product, tmp_path: Path, name: str, dtype: type
) -> None:
    f = np.array([[0, 1, 2, 3], [3, 2, 1, 0]], np.float32)
    x: np.ndarray = f.astype(dtype)
    y: np.ndarray = (2 * f).astype(dtype)
    trial = product.apply(cases / f"O13/{name}.onnx", *pair(tmp_path, {"x": x}, y=y, f=f), *EXACT)
    assert trial["outcome"] == "feasible"
    assert {loss["output"]: loss["loss"] for loss in trial["losses"]} == {"y": 0, "f": 0}


def test_o14_text_is_judged_by_agreement(cases: Path, product: Product, tmp_path: Path) -> None:
    model = cases / "O14/a_string_io.onnx"
    x = np.array(["a", "é", ""], object)
    trial = product.apply(model, *pair(tmp_path, {"x": x}, y=x))
    [loss] = trial["losses"]
    assert (trial["outcome"], loss["metric"], loss["loss"]) == ("feasible", "mismatch", 0)
    words = pair(tmp_path, {"x": x}, y=np.array(["a", "e", ""], object))
    trial = product.apply(model, *words)
    assert trial["outcome"] == "infeasible"
    assert "output 'y'" in trial["message"]
    assert "mismatch loss 0.333" in trial["message"]


def test_o14_text_and_numbers_are_each_judged_by_their_own_rule(
    cases: Path, product: Product
) -> None:
    trial = product.apply(cases / "O14/b_string_output.onnx")
    assert trial["outcome"] == "feasible"
    rules = {loss["output"]: loss["metric"] for loss in trial["losses"]}
    assert rules == {"s": "mismatch", "y": "l0"}


def test_o15_inputs_are_bound_by_name_and_an_unused_one_is_no_error(
    cases: Path, product: Product, tmp_path: Path
) -> None:
    sizes = {"b": 2, "a": 1, "c": 3}
    inputs = {name: np.full(5, size, np.float32) for name, size in sizes.items()}
    inputs["unused_mask"] = np.zeros((1, 128), np.int64)
    words = pair(tmp_path, inputs, y=np.full(5, 6, np.float32), x1=np.full(5, 3, np.float32))
    model = cases / "O15/order_and_unused_input.onnx"
    trial = product.apply(model, *words, *EXACT, OTHER_ROUTE)
    assert trial["outcome"] == "feasible"
    assert not trial["unchanged"]
    assert {loss["output"]: loss["loss"] for loss in trial["losses"]} == {"y": 0, "x1": 0}


def test_o16_large_whole_numbers_are_exact_and_nothing_frightens(
    cases: Path, product: Product, tmp_path: Path
) -> None:
    x = np.array([0, -1, BIG, -(2**62)], np.int64)
    model = cases / "O16/int64_range.onnx"
    trial = product.apply(model, *pair(tmp_path, {"x": x}, y=x + 2**40, s=x))
    assert trial["outcome"] == "feasible"
    assert not trial["notes"]
    wrong = x + np.array([0, 0, 1, 0])
    words = pair(tmp_path, {"x": x}, y=x + 2**40, s=wrong)
    text = product.refuse(model, *words, "--metric=linf", "--epsilon=0.1")
    assert "output s loses 0.25 (mismatch)" in text
