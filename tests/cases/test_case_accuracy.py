"""O17 to O22: what counts as right, as a user of the command sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cases.conftest import Product

DENORMAL = "--route=-session:set_denormal_as_zero=on"
GELU = "session:optimization.enable_gelu_approximation"


def given(model: Path) -> tuple[str | Path, ...]:
    return "--inputs", model.with_suffix(".inputs.npz")


@pytest.mark.parametrize(
    ("metric", "low", "high"),
    [("l0", 0, 0), ("l1", 0, 1e-8), ("l2", 0, 1e-8), ("linf", 1e-10, 1e-8), ("cos", 1, 1)],
)
def test_o17_zeros_agree_and_next_to_nothing_against_zero_gives_a_finite_figure(
    cases: Path, product: Product, tmp_path: Path, metric: str, low: float, high: float
) -> None:
    model = cases / "O17/zero_reference.onnx"
    x = np.load(model.with_suffix(".inputs.npz"))["x"]
    trusted = {"zero": x - x, "small": x - x, "half_zero": np.maximum(x, 0)}
    np.savez(tmp_path / "out.npz", **trusted)
    words = (*given(model), "--outputs", tmp_path / "out.npz", f"--metric={metric}")
    trial = product.apply(model, *words, "--epsilon=0.5")
    losses = {loss["output"]: loss["loss"] for loss in trial["losses"]}
    assert low <= losses.pop("small") <= high
    assert losses == {"zero": 0, "half_zero": 0}
    assert trial["outcome"] == ("infeasible" if metric == "cos" else "feasible")


def test_o18_ids_are_judged_by_agreement_and_do_not_drown_the_others(
    cases: Path, product: Product, tmp_path: Path
) -> None:
    model = cases / "O18/topk_argmax.onnx"
    trial = product.apply(model, *given(model))
    rules = {loss["output"]: loss["metric"] for loss in trial["losses"]}
    assert rules == {"val": "l0", "idx": "mismatch", "cls": "mismatch"}
    val = np.array([[9, 8, 7], [1, 1, 1], [1, 1, 1], [1, 1, 1]], np.float32)
    idx = np.array([[9, 8, 7], [0, 2, 4], [0, 2, 4], [0, 2, 9]], np.int64)
    np.savez(tmp_path / "out.npz", val=val, idx=idx, cls=np.array([9, 0, 0, 0], np.int64))
    words = (*given(model), "--outputs", tmp_path / "out.npz", "--metric=linf")
    trial = product.apply(model, *words, "--epsilon=0.01", "--epsilon=idx:0.1")
    losses = {loss["output"]: loss["loss"] for loss in trial["losses"]}
    assert trial["outcome"] == "feasible"
    assert losses == {"val": 0, "idx": pytest.approx(1 / 12), "cls": 0}


def test_o19_nan_and_infinity_that_belong_there_count_as_equal(
    cases: Path, product: Product, tmp_path: Path
) -> None:
    model = cases / "O19/nan_inf_reference.onnx"
    trial = product.apply(model, *given(model), "--metric=linf", "--epsilon=0")
    assert trial["outcome"] == "feasible"
    x = np.array([[1, -1, 0, 2], [3, 4, 5, 6]], np.float32)
    att = np.where([[1, 1, 0, 1], [0, 0, 0, 0]], x, np.float32("inf"))  # the wrong sign
    with np.errstate(all="ignore"):
        y = np.log(x)
    p = np.full((2, 4), np.nan, np.float32)
    p[0] = np.exp([1, -1, -np.inf, 2]) / np.exp([1, -1, -np.inf, 2]).sum()
    np.savez(tmp_path / "out.npz", y=y, att=att.astype(np.float32), p=p)
    trial = product.apply(model, *given(model), "--outputs", tmp_path / "out.npz")
    assert trial["outcome"] == "infeasible"
    assert "output 'att'" in trial["message"]
    assert "infinity not as in the reference: 5 of 8" in trial["message"]
    assert [loss["output"] for loss in trial["losses"] if loss["loss"] != 0] == ["att"]


@pytest.mark.parametrize("name", ["a_random_like", "b_dropout_training"])
def test_o20_a_random_model_is_told_before_tuning_and_refused(
    cases: Path, product: Product, name: str
) -> None:
    text = product.refuse(cases / f"O20/{name}.onnx")
    assert text.startswith("The model does not repeat itself: ")
    assert "same inputs twice in one session: output 'y' differs in" in text
    assert "same inputs in a fresh process: output 'y' differs in" in text
    assert text.endswith("fix its random seeds, or give a looser --epsilon.")


def test_o20_apply_tells_why_a_random_model_is_over_epsilon(cases: Path, product: Product) -> None:
    trial = product.apply(cases / "O20/a_random_like.onnx")
    assert trial["outcome"] == "infeasible"
    assert "The model does not repeat itself" in trial["notes"]
    assert "Fix its random seeds, or give a looser --epsilon." in trial["notes"]


def test_o20_a_seeded_model_is_told_and_judged_by_its_first_runs(
    cases: Path, product: Product, tmp_path: Path
) -> None:
    words = ("--study", tmp_path / "study", "--only", "execution_mode", "--min-gain", "9")
    run = product.run("tune", cases / "O20/c_seeded.onnx", *words, "--budget", "40s")
    assert run.code == 0
    assert "same inputs twice in one session: output 'y' differs in 100 %" in run.notes
    assert "over epsilon" not in run.out
    assert "outputs changed" not in run.out


def test_o21_the_worst_output_decides_and_is_named(cases: Path, product: Product) -> None:
    model = cases / "O21/two_scales.onnx"
    words = (*given(model), "--outputs", model.with_suffix(".reference.npz"))
    trial = product.apply(model, *words)
    assert trial["outcome"] == "infeasible"
    assert trial["message"].startswith("output 'scores'")
    losses = {loss["output"]: loss["loss"] for loss in trial["losses"]}
    assert losses["boxes"] == 0
    assert losses["scores"] > 0.9
    text = product.refuse(model, *words)
    assert "output scores loses" in text
    assert "--metric l0 --epsilon auto" in text
    assert "--reference baseline" in text


def test_o22_denormals_do_not_depend_on_which_route_came_first(
    cases: Path, product: Product
) -> None:
    model = cases / "O22/a_denormal.onnx"
    words = (*given(model), "--metric=linf", "--epsilon=0")
    trial = product.apply(model, *words, DENORMAL)
    assert trial["outcome"] == "infeasible"
    assert trial["mode"] == "one process per arm"
    [loss] = trial["losses"]
    assert loss["loss"] > 0
    assert product.apply(model, *words)["outcome"] == "feasible"


def test_o22_a_quantized_model_is_judged_against_its_unoptimized_session(
    cases: Path, product: Product
) -> None:
    model = cases / "O22/b_qdq.onnx"
    exact = ("--metric=linf", "--epsilon=0")
    # What the default does is the machine's business; that it is judged is ours.
    trial = product.apply(model, *given(model), *exact)
    largest = max(loss["loss"] for loss in trial["losses"])
    assert trial["outcome"] == ("infeasible" if largest else "feasible")


def test_o22_a_fast_but_wrong_route_is_infeasible_and_the_report_names_it(
    cases: Path, product: Product, tmp_path: Path
) -> None:
    model, study = cases / "O22/c_gelu.onnx", tmp_path / "study"
    words = (*given(model), "--metric=linf", "--epsilon=1e-5", "--only", GELU)
    run = product.run("tune", model, "--study", study, *words, "--budget", "40s")
    assert run.code == 0
    assert "The default ships: the only route" in run.out
    assert "All 2 routes of this space are known; nothing is left to try." in run.notes
    report = (study / "report.md").read_text(encoding="utf-8")
    [row] = [line for line in report.splitlines() if GELU in line and line.startswith("|")]
    assert "over epsilon" in row
    assert "output 'y'" in row
    assert "is over epsilon 1e-05" in row
    assert not (study / "winner").exists()
