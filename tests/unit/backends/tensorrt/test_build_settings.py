"""Settings of a base that are no knobs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from smart_tuner.backends.tensorrt.run_settings import RunSettings
from smart_tuner.backends.tensorrt.settings import RUN_SETTINGS, BuildSettings, read_settings
from smart_tuner.errors import UserInputError

if TYPE_CHECKING:
    from pathlib import Path


def test_what_is_no_setting_is_left_for_the_knobs() -> None:
    base = {
        "builder:optimization_level": "2",
        "kgen:tiling": "1",
        "refit": "on",
        "launch": "graph",
    }
    settings, rest = read_settings(base)

    assert settings == BuildSettings(refit=True)
    assert rest == {"builder:optimization_level": "2", "kgen:tiling": "1"}


def test_every_setting_of_the_run_is_left_to_the_runner() -> None:
    assert set(RUN_SETTINGS) == set(RunSettings.__slots__)


@pytest.mark.parametrize(
    "text", ["x:1x3x8x8,y:2", "x:1x3x8x8 y:2", "  x:1x3x8x8   y:2 ", "x:1x3x8x8, y:2"]
)
def test_shapes_may_stand_with_blanks_or_commas_between_them(text: str) -> None:
    settings, _ = read_settings({"min_shapes": text})
    assert settings.min_shapes == {"x": (1, 3, 8, 8), "y": (2,)}


def test_names_may_hold_blanks_and_colons() -> None:
    settings, _ = read_settings({"opt_shapes": "gpu 0/data:0:1x3 y:scalar"})
    assert settings.opt_shapes == {"gpu 0/data:0": (1, 3), "y": ()}


def test_formats_name_type_and_layout() -> None:
    settings, _ = read_settings({"io_formats": "x:fp16:hwc8 a:0:fp32:chw"})
    assert settings.io_formats == {"x": ("fp16", "hwc8"), "a:0": ("fp32", "chw")}


def test_plugins_keep_their_order_and_become_absolute(tmp_path: Path) -> None:
    libraries = [tmp_path / "b.so", tmp_path / "a.so"]
    for path in libraries:
        path.write_bytes(b"")
    settings, _ = read_settings({"plugins": os.pathsep.join(map(str, libraries))})
    assert settings.plugins == tuple(libraries)


@pytest.mark.parametrize("text", ["90", "9.0", "sm90", "SM90"])
def test_a_gpu_may_be_named_as_people_do(text: str) -> None:
    assert read_settings({"compute_capability": text})[0].compute_capability == "90"


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("strip_plan", "yes", "strip_plan = yes: not one of off, on."),
        ("profiles", "many", "profiles = many: not one of shared, per_point."),
        ("hardware_compatibility", "volta", "not one of none, ampere_plus, same_compute_capab"),
        ("weight_streaming_budget", "-1", "give a number of bytes, auto or off"),
        ("weight_streaming_budget", "1GB", "give a number of bytes, auto or off"),
        ("compute_capability", "hopper", "give it as digits, e.g. 80 or 120"),
        ("max_shapes", "x:1x-3", "no shape for input 'x'"),
        ("max_shapes", "x:1x3 x:2x3", "Input 'x' is given two shapes"),
        ("io_formats", "x:fp16", "is not of the form name:fp16:chw"),
        ("io_formats", "x:fp16:chw x:fp32:chw", "tensor 'x' has two formats"),
        ("plugins", "/no/such.so", "no file /no/such.so"),
    ],
)
def test_a_wrong_value_is_named_with_its_setting(name: str, value: str, said: str) -> None:
    with pytest.raises(UserInputError) as caught:
        read_settings({name: value})
    assert said in str(caught.value)
