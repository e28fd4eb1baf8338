from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from smart_tuner.errors import UserInputError
from smart_tuner.model.workload_file import read_workload_file

if TYPE_CHECKING:
    from pathlib import Path


def test_defaults_and_all_entries(tmp_path: Path) -> None:
    file = tmp_path / "w.toml"
    file.write_text(
        """
        [[point]]
        name = "a"
        [[point]]
        name = "b-2.x"
        weight = 0.5
        shapes = { "images:0" = [1, 3], scalar = [] }
        ranges = { ids = [0, 9], x = [-1.5, 1] }
        inputs = ["i.npz"]
        outputs = ["o.npz"]
        held_out = ["h"]
        held_out_outputs = ["ho"]
        """
    )
    plain, full = read_workload_file(file)
    assert (plain.name, plain.weight, plain.shapes, plain.inputs) == ("a", 1, {}, [])
    assert full.shapes == {"images:0": [1, 3], "scalar": []}
    assert full.ranges == {"ids": [0, 9], "x": [-1.5, 1]}
    assert isinstance(full.ranges["ids"][0], int)
    assert (full.weight, full.held_out, full.held_out_outputs) == (0.5, ["h"], ["ho"])


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("", "point: Field required"),
        ("point = []", "point: "),
        ("[[point]]", r"point\.0\.name: Field required"),
        ("[[point]]\nname = 'a'\nweigth = 1", r"point\.0\.weigth: Extra inputs"),
        ("other = 1\n[[point]]\nname = 'a'", "other: Extra inputs"),
        ("[[point]]\nname = 'a'\nweight = 0", "weight"),
        ("[[point]]\nname = 'a'\nweight = inf", "weight"),
        ("[[point]]\nname = 'a'\nweight = nan", "weight"),
        ("[[point]]\nname = 'a'\nweight = '1'", "weight"),
        ("[[point]]\nname = '../a'", "name"),
        ("[[point]]\nname = '.a'", "name"),
        ("[[point]]\nname = 'a'\nshapes = { x = [-1] }", "shapes"),
        ("[[point]]\nname = 'a'\nshapes = { x = [true] }", "shapes"),
        ("[[point]]\nname = 'a'\nshapes = { x = '1x2' }", "shapes"),
        ("[[point]]\nname = 'a'\nranges = { x = [1] }", "ranges"),
        ("[[point]]\nname = 'a'\ninputs = 'x.npz'", "inputs"),
        ("[[point]]\nname = 'a'\n[[point]]\nname = 'a'", "point 'a' occurs twice"),
        ("not toml", "not valid TOML"),
    ],
)
def test_wrong_files_are_refused_by_the_entry(tmp_path: Path, text: str, cause: str) -> None:
    file = tmp_path / "w.toml"
    file.write_text(text)
    with pytest.raises(UserInputError, match=cause) as caught:
        read_workload_file(file)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_and_huge_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserInputError, match=r"none\.toml"):
        read_workload_file(tmp_path / "none.toml")
    (tmp_path / "big.toml").write_bytes(b"#" * (1 << 21))
    with pytest.raises(UserInputError, match="too large"):
        read_workload_file(tmp_path / "big.toml")
