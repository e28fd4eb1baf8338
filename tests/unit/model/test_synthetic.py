from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from smart_tuner.errors import UserInputError
from smart_tuner.model.onnx_codes import NAME_OF_CODE
from smart_tuner.model.spec import ModelSpec, TensorSpec
from smart_tuner.model.synthetic import check_ranges, parse_ranges, synthetic_inputs

KEY = (7, "default", "synthetic-0")


def model(**dtypes: str) -> ModelSpec:
    inputs = tuple(TensorSpec(name, dtype, None) for name, dtype in dtypes.items())
    return ModelSpec(Path("/m.onnx"), "0", 1, inputs, (), 10, {"": 17}, {})


def made(dtype: str, ends: tuple[float, float] | None = None, shape: Any = (400,)) -> Any:
    ranges = {} if ends is None else {"x": ends}
    return synthetic_inputs(model(x=dtype), {"x": shape}, ranges, KEY)["x"]


@pytest.mark.parametrize("dtype", sorted(NAME_OF_CODE.values()))
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)])
def test_every_type_and_shape_can_be_made(dtype: str, shape: tuple[int, ...]) -> None:
    array = made(dtype, shape=shape)
    assert array.shape == shape
    assert array.dtype.name == ("object" if dtype == "string" else dtype)


def test_defaults_are_small_and_varied() -> None:
    floats = made("float32")
    assert 0 <= floats.min() < 0.1 < 0.9 < floats.max() < 1
    assert set(made("int64").tolist()) == {0, 1}
    assert set(made("uint8").tolist()) == {0, 1}
    assert set(made("bool").tolist()) == {False, True}
    assert all(isinstance(text, str) for text in made("string"))


def test_ranges_hold_with_both_ends_for_integers() -> None:
    assert set(made("int32", (-2, 1)).tolist()) == {-2, -1, 0, 1}
    floats = made("float64", (-3, 5))
    assert -3 <= floats.min() < -2 < 4 < floats.max() < 5
    assert set(made("int8", (4, 4)).tolist()) == {4}


def test_the_widest_ranges_work() -> None:
    assert made("uint64", (2**64 - 1, 2**64 - 1)).tolist()[0] == 2**64 - 1
    assert made("int64", (-(2**63), 2**63 - 1)).dtype == np.int64
    assert np.isfinite(made("float64", (-1.7e308, 1.7e308))).all()


def test_values_depend_on_the_key_and_the_name_only() -> None:
    shapes = {"a": (5,), "b": (5,)}
    one = synthetic_inputs(model(a="float32", b="float32"), shapes, {}, KEY)
    two = synthetic_inputs(
        model(b="float32", a="float32"), dict(reversed(shapes.items())), {}, KEY
    )
    alone = synthetic_inputs(model(a="float32"), {"a": (5,)}, {}, KEY)
    np.testing.assert_array_equal(one["a"], two["a"])
    np.testing.assert_array_equal(one["a"], alone["a"])
    assert (one["a"] != one["b"]).any()
    for key in ((8, *KEY[1:]), (7, "other", KEY[2]), (7, "default", "synthetic-1")):
        other = synthetic_inputs(model(a="float32"), {"a": (5,)}, {}, key)
        assert (other["a"] != one["a"]).any()


def test_inputs_beyond_the_memory_are_refused() -> None:
    with pytest.raises(UserInputError, match="smaller --shapes, first of all for 'x'"):
        made("float32", shape=(10**9, 10**9))


def test_ranges_are_read_with_hostile_names_and_exact_integers() -> None:
    assert parse_ranges(["images:0:-1:1.5,'a,b':0:9", "c:0:9007199254740993"]) == {
        "images:0": (-1, 1.5),
        "a,b": (0, 9),
        "c": (0, 9007199254740993),
    }


@pytest.mark.parametrize(
    "text", ["x:1", "x:2:1", "x:a:b", "x:nan:1", "x:0:inf", "x::1", "'x':1:2:3"]
)
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(UserInputError, match="name:low:high"):
        parse_ranges([text])


@pytest.mark.parametrize(
    ("dtype", "ends", "cause"),
    [
        ("uint8", (-1, 3), "uint8 takes 0 to 255"),
        ("int4", (0, 8), "int4 takes -8 to 7"),
        ("int32", (0.5, 2), "does not fit input 'x'"),
        ("float16", (0, 1e6), "does not fit input 'x'"),
        ("bool", (0, 1), "is bool, which has no range"),
        ("string", (0, 1), "is string, which has no range"),
    ],
)
def test_ranges_must_fit_the_type(dtype: str, ends: tuple[float, float], cause: str) -> None:
    with pytest.raises(UserInputError, match=cause):
        check_ranges(model(x=dtype), {"x": ends})


def test_a_range_for_no_input_is_refused() -> None:
    with pytest.raises(UserInputError, match="no input 'z'; its inputs: 'x'"):
        check_ranges(model(x="float32"), {"z": (0, 1)})
    check_ranges(model(x="float32"), {"x": (0, 255)})
