from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from smart_tuner.errors import UserInputError
from smart_tuner.model.sources import find_pairs, own_name

if TYPE_CHECKING:
    from pathlib import Path

    from smart_tuner.model.sources import PairSource


def npz(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, x=np.zeros(1))
    return path


def shown(pairs: tuple[PairSource, ...], root: Path) -> list[tuple[str, str, str]]:
    def file(source: object) -> str:
        files = getattr(source, "files", ())
        return ",".join(path.relative_to(root).as_posix() for _, path in files)

    return [(pair.name, file(pair.inputs), file(pair.outputs)) for pair in pairs]


def test_one_text_is_one_pair_in_the_order_given(tmp_path: Path) -> None:
    for name in ("b.npz", "a.inputs.npz", "out1.npz", "out2.npz"):
        npz(tmp_path / name)
    pairs = find_pairs(["b.npz", "a.inputs.npz"], ["out1.npz", "out2.npz"], tmp_path)
    assert shown(pairs, tmp_path) == [
        ("b", "b.npz", "out1.npz"),
        ("a", "a.inputs.npz", "out2.npz"),
    ]


def test_outputs_go_by_name_when_all_names_agree(tmp_path: Path) -> None:
    for name in ("a.inputs.npz", "b.inputs.npz", "a.outputs.npz", "b.reference.npz"):
        npz(tmp_path / name)
    inputs = ["a.inputs.npz", "b.inputs.npz"]
    pairs = find_pairs(inputs, ["b.reference.npz", "a.outputs.npz"], tmp_path)
    assert [row[2] for row in shown(pairs, tmp_path)] == ["a.outputs.npz", "b.reference.npz"]


def test_named_files_of_one_pair_stand_in_one_text(tmp_path: Path) -> None:
    for name in ("a.bin", "b,c.bin"):
        (tmp_path / name).write_bytes(b"")
    [pair] = find_pairs(["images:0:a.bin,'x y':'b,c.bin'"], [], tmp_path)
    assert pair.inputs is not None
    assert pair.inputs.files == (
        ("images:0", tmp_path / "a.bin"),
        ("x y", tmp_path / "b,c.bin"),
    )


@pytest.mark.parametrize("second", ["outputs", "reference"])
def test_a_folder_of_files_with_roles_in_their_names(tmp_path: Path, second: str) -> None:
    for name in ("b", "a"):
        npz(tmp_path / f"d/{name}.inputs.npz")
        npz(tmp_path / f"d/{name}.{second}.npz")
    (tmp_path / "d/README.md").write_text("ignored")
    assert shown(find_pairs(["d"], [], tmp_path), tmp_path) == [
        ("a", "d/a.inputs.npz", f"d/a.{second}.npz"),
        ("b", "d/b.inputs.npz", f"d/b.{second}.npz"),
    ]


def test_a_folder_of_folders(tmp_path: Path) -> None:
    npz(tmp_path / "d/two/inputs.npz")
    npz(tmp_path / "d/one/inputs.npz")
    npz(tmp_path / "d/one/outputs.npz")
    assert shown(find_pairs(["d"], [], tmp_path), tmp_path) == [
        ("one", "d/one/inputs.npz", "d/one/outputs.npz"),
        ("two", "d/two/inputs.npz", ""),
    ]


def test_onnx_test_data(tmp_path: Path) -> None:
    home = tmp_path / "net/test_data_set_0"
    home.mkdir(parents=True)
    for name in ("input_0.pb", "input_1.pb", "output_0.pb"):
        (home / name).write_bytes(b"")
    (tmp_path / "net/model.onnx").write_bytes(b"")
    prefix = "net/test_data_set_0"
    row = ("test_data_set_0", f"{prefix}/input_0.pb,{prefix}/input_1.pb", f"{prefix}/output_0.pb")
    assert shown(find_pairs(["net"], [], tmp_path), tmp_path) == [row]
    assert shown(find_pairs([prefix], [], tmp_path), tmp_path) == [row]


def test_outputs_may_come_from_another_folder(tmp_path: Path) -> None:
    for name in ("in/a.inputs.npz", "in/b.inputs.npz", "ref/b.outputs.npz", "ref/a.outputs.npz"):
        npz(tmp_path / name)
    assert [row[2] for row in shown(find_pairs(["in"], ["ref"], tmp_path), tmp_path)] == [
        "ref/a.outputs.npz",
        "ref/b.outputs.npz",
    ]


def test_equal_names_are_made_different(tmp_path: Path) -> None:
    for name in ("1/x.npz", "2/x.npz"):
        npz(tmp_path / name)
    pairs = find_pairs(["1/x.npz", "2/x.npz"], [], tmp_path)
    assert [pair.name for pair in pairs] == ["x", "x-2"]
    assert len(own_name("n" * 300, set())) <= 40


@pytest.mark.parametrize(
    ("inputs", "outputs", "cause"),
    [
        (["none.npz"], [], "no such file or folder"),
        (["x:none.bin"], [], "no such file"),
        (["x:d.bin,y"], [], "not of the form name:path"),
        (["empty"], [], "holds no pairs"),
        (["stray"], [], "belongs to no pair"),
        (["twice"], [], "has outputs twice"),
        (["no_inputs"], [], "has outputs but no inputs"),
        (["a.npz", "a.npz"], ["a.npz"], "2 inputs but 1 reference outputs"),
        (["whole"], ["a.npz"], "brings its own outputs"),
        (["a.npz"], ["only_inputs"], "has no outputs to trust"),
    ],
)
def test_what_does_not_fit_is_refused(
    tmp_path: Path, inputs: list[str], outputs: list[str], cause: str
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "d.bin").write_bytes(b"")
    for name in (
        "a.npz",
        "stray/a.npz",
        "twice/a.inputs.npz",
        "twice/a.outputs.npz",
        "twice/a.reference.npz",
        "no_inputs/a.outputs.npz",
        "only_inputs/a.inputs.npz",
        "whole/inputs.npz",
        "whole/outputs.npz",
    ):
        npz(tmp_path / name)
    with pytest.raises(UserInputError, match=cause):
        find_pairs(inputs, outputs, tmp_path)
