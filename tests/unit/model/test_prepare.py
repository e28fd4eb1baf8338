from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from smart_tuner.errors import EnvironmentNotFit, UserInputError
from smart_tuner.model.prepare import InputOptions, prepare_workload
from smart_tuner.model.spec import ModelSpec, TensorSpec
from smart_tuner.model.store import read_workload
from smart_tuner.model.tensors import load_tensors

X = np.arange(4, dtype=np.float32).reshape(2, 2)


def model(*inputs: TensorSpec) -> ModelSpec:
    outputs = (TensorSpec("y", "float32", ("N", 2)),)
    return ModelSpec(Path("/m.onnx"), "0", 1, inputs, outputs, 10, {"": 17}, {})


NET = model(TensorSpec("x", "float32", ("N", 2)))


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with two pairs and their outputs."""
    home = tmp_path / "given"
    home.mkdir()
    for name, array in (("a", X), ("b", X + 10)):
        np.savez(home / f"{name}.npz", x=array)
        np.savez(home / f"{name}_out.npz", y=2 * array)
    np.savez(home / "large.npz", x=np.zeros((5, 2), np.float32))
    monkeypatch.chdir(home)
    return home


def files(folder: Path) -> list[str]:
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


def test_without_inputs_they_are_synthetic_and_said_to_be(tmp_path: Path) -> None:
    workload, notes = prepare_workload(NET, InputOptions(seed=7), tmp_path / "w")
    [point] = workload.points
    assert (point.name, point.weight, point.synthetic) == ("default", 1, True)
    assert point.shapes == {"x": (1, 2)}
    assert [pair.name for pair in point.pairs] == ["synthetic-0", "synthetic-1"]
    assert any("synthetic (seed 7, 2 pairs)" in note for note in notes)
    assert any("first dimension taken as 1" in note for note in notes)
    assert files(tmp_path / "w") == [
        "default/synthetic-0.inputs",
        "default/synthetic-1.inputs",
        "workload.json",
    ]
    assert point.pairs[0].outputs == tmp_path / "w/default/synthetic-0.outputs"


def test_the_same_options_give_the_same_files(tmp_path: Path) -> None:
    for name in ("a", "b"):
        prepare_workload(NET, InputOptions(seed=3, synthetic_pairs=1), tmp_path / name)
    for file in files(tmp_path / "a"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_ranges_and_shapes_reach_the_inputs(tmp_path: Path) -> None:
    options = InputOptions(shapes={"x": (3, 2)}, ranges={"x": (5, 6)}, synthetic_pairs=1)
    workload, notes = prepare_workload(NET, options, tmp_path)
    array = load_tensors(workload.points[0].pairs[0].inputs)["x"]
    assert array.shape == (3, 2)
    assert array.min() >= 5
    assert len(notes) == 1


def test_given_inputs_settle_the_shapes_and_are_kept(given: Path, tmp_path: Path) -> None:
    options = InputOptions(inputs=("a.npz", "b.npz"), references=("a_out.npz", "b_out.npz"))
    workload, notes = prepare_workload(NET, options, tmp_path / "w")
    [point] = workload.points
    assert notes == ()
    assert not point.synthetic
    assert point.shapes == {"x": (2, 2)}
    assert [pair.name for pair in point.search_pairs] == ["a", "b"]
    np.testing.assert_array_equal(load_tensors(point.pairs[1].inputs)["x"], X + 10)
    np.testing.assert_array_equal(load_tensors(point.pairs[1].outputs)["y"], 2 * (X + 10))


def test_outputs_that_are_not_given_are_named_but_not_there(given: Path, tmp_path: Path) -> None:
    workload, _ = prepare_workload(NET, InputOptions(inputs=("a.npz",)), tmp_path / "w")
    [pair] = workload.points[0].pairs
    assert pair.inputs.is_file()
    assert not pair.outputs.exists()


def test_outputs_of_an_earlier_attempt_do_not_pass_for_trusted(
    given: Path, tmp_path: Path
) -> None:
    both = InputOptions(inputs=("a.npz",), references=("a_out.npz",))
    prepare_workload(NET, both, tmp_path / "w")
    workload, _ = prepare_workload(NET, InputOptions(inputs=("a.npz",)), tmp_path / "w")
    assert not workload.points[0].pairs[0].outputs.exists()


def test_only_pairs_given_as_held_out_are_held_out(given: Path, tmp_path: Path) -> None:
    options = InputOptions(
        inputs=("a.npz",), held_out=("b.npz",), held_out_references=("b_out.npz",)
    )
    workload, _ = prepare_workload(NET, options, tmp_path / "w")
    [point] = workload.points
    assert [(pair.name, pair.held_out) for pair in point.pairs] == [("a", False), ("b", True)]
    assert point.pairs[1].outputs.is_file()


def test_held_out_pairs_may_stand_beside_synthetic_ones(given: Path, tmp_path: Path) -> None:
    workload, notes = prepare_workload(NET, InputOptions(held_out=("b.npz",)), tmp_path / "w")
    [point] = workload.points
    assert point.synthetic
    assert point.shapes == {"x": (2, 2)}
    assert [pair.held_out for pair in point.pairs] == [False, False, True]
    assert len(notes) == 1


def test_a_model_without_inputs_has_one_empty_pair(given: Path, tmp_path: Path) -> None:
    np.savez(given / "y.npz", y=X)
    workload, notes = prepare_workload(model(), InputOptions(), tmp_path / "w")
    assert load_tensors(workload.points[0].pairs[0].inputs) == {}
    assert notes == ()
    options = InputOptions(references=("y.npz",))
    workload, _ = prepare_workload(model(), options, tmp_path / "v")
    np.testing.assert_array_equal(load_tensors(workload.points[0].pairs[0].outputs)["y"], X)


@pytest.mark.parametrize(
    ("options", "cause"),
    [
        ({"inputs": ("a.npz", "large.npz")}, "make a --workload file with a point"),
        ({"inputs": ("a.npz",), "shapes": {"x": (3, 2)}}, "is 2x2, but --shapes says 3x2"),
        ({"references": ("a_out.npz",)}, "has reference outputs but no inputs"),
        ({"inputs": ("a.npz",), "references": ("a.npz",)}, "'x' is not of the model"),
        ({"inputs": ("a_out.npz",)}, "'y' is not of the model, which has 'x'"),
        ({"inputs": ("a.npz",), "ranges": {"x": (0, 1)}}, "Ranges are for synthetic inputs only"),
        ({"ranges": {"z": (0, 1)}}, "no input 'z'"),
        ({"shapes": {"x": (1, 3)}}, "dimension 1 has to be 2"),
        ({"synthetic_pairs": 0}, "At least 1 synthetic pair"),
    ],
)
def test_contradictions_are_refused_before_the_workload_counts(
    given: Path, tmp_path: Path, options: dict[str, Any], cause: str
) -> None:
    with pytest.raises(UserInputError, match=cause) as caught:
        prepare_workload(NET, InputOptions(**options), tmp_path / "w")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "w/workload.json").exists()


def test_wrong_shapes_leave_no_folder(tmp_path: Path) -> None:
    spec = model(TensorSpec("x", "float32", (1, 3, None, None)))
    with pytest.raises(UserInputError, match="--shapes x:1x3xHxW"):
        prepare_workload(spec, InputOptions(), tmp_path / "w")
    assert not (tmp_path / "w").exists()


def test_a_file_in_the_way_is_an_unfit_environment(tmp_path: Path) -> None:
    (tmp_path / "w").write_text("")
    with pytest.raises(EnvironmentNotFit, match="cannot be made"):
        prepare_workload(NET, InputOptions(), tmp_path / "w")


WORKLOAD = """
[[point]]
name = "real"
weight = 3
inputs = ["a.npz"]
outputs = ["a_out.npz"]
held_out = ["b.npz"]

[[point]]
name = "made"
shapes = { x = [7, 2] }
ranges = { x = [-1, 1] }
"""


def test_a_workload_file_gives_weighted_points(
    given: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = given / "w.toml"
    file.write_text(WORKLOAD)
    monkeypatch.chdir(tmp_path)  # its paths are relative to itself
    workload, notes = prepare_workload(NET, InputOptions(workload=file, seed=1), tmp_path / "w")
    real, made = workload.points
    assert (real.name, real.weight, real.synthetic, real.shapes) == (
        "real",
        3,
        False,
        {"x": (2, 2)},
    )
    assert (made.name, made.weight, made.synthetic, made.shapes) == (
        "made",
        1,
        True,
        {"x": (7, 2)},
    )
    assert [pair.held_out for pair in real.pairs] == [False, True]
    assert [note.split(":")[0] for note in notes] == ["Point made"]
    assert read_workload(NET, tmp_path / "w") == workload


def test_a_workload_file_stands_alone(given: Path, tmp_path: Path) -> None:
    file = given / "w.toml"
    file.write_text(WORKLOAD)
    options = InputOptions(workload=file, shapes={"x": (1, 2)})
    with pytest.raises(UserInputError, match="leave the other options out"):
        prepare_workload(NET, options, tmp_path / "w")
