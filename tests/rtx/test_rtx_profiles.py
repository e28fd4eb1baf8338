"""Profiles of networks with free sizes, by NVIDIA's real parser and builder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx
import pytest

from smart_tuner.errors import UserInputError
from smart_tuner.model.public import fetch_public_model
from tests.rtx.building import build, small_model, small_request

if TYPE_CHECKING:
    from pathlib import Path

ONE, MANY = {"x": (1, 3, 16, 16)}, {"x": (8, 3, 32, 32)}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return small_model(tmp_path / "free.onnx", "n", 3, "h", "w")


@pytest.mark.parametrize(
    ("base", "said"),
    [
        ({}, "Input 'x' is (?, 3, ?, ?) in the model and has no profile: give its sizes with "),
        ({"opt_shapes": "z:1x3x8x8"}, "opt_shapes: the model has no input 'z'; its inputs: 'x'."),
        ({"opt_shapes": "x:1x3x8"}, "4 dimensions are needed, 3 were given"),
        ({"opt_shapes": "x:1x4x8x8"}, "dimension 1 has to be 3"),
        (
            {"min_shapes": "x:4x3x8x8", "opt_shapes": "x:2x3x8x8"},
            "Input 'x': 4x3x8x8 (min_shapes) is larger than 2x3x8x8 (opt_shapes) in dimension 0",
        ),
        (
            {"opt_shapes": "x:2x3x8x8", "max_shapes": "x:2x3x8x4"},
            "2x3x8x8 (opt_shapes) is larger than 2x3x8x4 (max_shapes) in dimension 3",
        ),
    ],
)
def test_a_wrong_profile_is_named(
    model: Path, tmp_path: Path, base: dict[str, str], said: str
) -> None:
    with pytest.raises(UserInputError) as caught:
        build(small_request(model, base), tmp_path)
    assert said in str(caught.value)


def test_a_point_outside_of_a_given_profile_is_refused(model: Path, tmp_path: Path) -> None:
    base = {"max_shapes": "x:4x3x32x32"}
    with pytest.raises(UserInputError, match=r"8x3x32x32 .* is larger than 4x3x32x32"):
        build(small_request(model, base, ONE, MANY), tmp_path)


def test_what_a_profile_spans_decides_the_plan(model: Path, tmp_path: Path) -> None:
    given = {
        "min_shapes": "x:1x3x16x16",
        "opt_shapes": "x:1x3x16x16",
        "max_shapes": "x:8x3x32x32",
    }
    spanning = build(small_request(model, {}, ONE, MANY), tmp_path / "a")
    written_out = build(small_request(model, given), tmp_path / "b")
    single = build(small_request(model, {}, ONE), tmp_path / "c")
    each = build(small_request(model, {"profiles": "per_point"}, ONE, MANY), tmp_path / "d")

    assert written_out.sha256 == spanning.sha256
    assert len({spanning.sha256, single.sha256, each.sha256}) == 3


def test_a_profile_for_each_point_leaves_no_room_for_shapes_in_the_base(
    model: Path, tmp_path: Path
) -> None:
    base = {"profiles": "per_point", "opt_shapes": "x:1x3x16x16"}
    with pytest.raises(UserInputError, match="profiles = per_point takes its shapes from"):
        build(small_request(model, base, ONE), tmp_path)


def test_a_network_without_free_sizes_needs_no_profile(tmp_path: Path) -> None:
    model = small_model(tmp_path / "fixed.onnx", 1, 3, 16, 16)
    engine = build(small_request(model), tmp_path)

    assert engine.size_bytes == engine.path.stat().st_size


def test_one_name_for_two_sizes_does_not_stop_a_network(tmp_path: Path) -> None:
    """PP-OCR calls height and width ``?``, which the compiler takes for one size."""
    model = fetch_public_model("ppocr-cls")
    engine = build(small_request(model, {}, {"x": (2, 3, 48, 192)}), tmp_path)

    assert engine.size_bytes
    assert sorted(path.name for path in tmp_path.iterdir()) == ["engine.json", "engine.plan"]


def test_such_a_network_may_keep_its_weights_beside_it(tmp_path: Path) -> None:
    inside = small_model(tmp_path / "inside.onnx", "n", 3, "?", "?")
    (tmp_path / "beside").mkdir()
    beside = tmp_path / "beside" / "model.onnx"
    onnx.save(
        onnx.load(inside), beside, save_as_external_data=True, location="w.bin", size_threshold=0
    )
    before = beside.read_bytes()
    engines = [
        build(small_request(model, {}, {"x": (1, 3, 16, 32)}), model.parent / "engine")
        for model in (inside, beside)
    ]

    assert engines[0].sha256 == engines[1].sha256
    assert beside.read_bytes() == before
    assert sorted(path.name for path in beside.parent.iterdir()) == [
        "engine",
        "model.onnx",
        "w.bin",
    ]
