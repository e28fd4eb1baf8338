from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from smart_tuner.backends.tensorrt.elements import Element, converted, element_of, restored
from smart_tuner.backends.tensorrt.layout import Layout, layout_of
from smart_tuner.errors import RunError
from smart_tuner.model.dtypes import numpy_type

TYPES = [
    "float32",
    "float16",
    "bfloat16",
    "float8_e4m3fn",
    "float8_e8m0fnu",
    "float4_e2m1fn",
    "int4",
    "int8",
    "int32",
    "int64",
    "uint8",
    "bool",
]


def values(dtype: str, count: int) -> Any:
    return (np.arange(count) % 7 % (2 if dtype == "bool" else 5)).astype(numpy_type(dtype))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("count", [0, 1, 5, 8])
def test_every_type_comes_back_from_a_buffer(dtype: str, count: int) -> None:
    layout = Layout(Element(dtype), (1, count))
    data = np.full(layout.nbytes + 3, 0xEE, np.uint8)
    array = values(dtype, count).reshape(1, count)
    layout.write(array, data)
    found = layout.read(data)
    assert found.dtype == array.dtype
    assert found.tobytes() == array.tobytes()
    assert data[layout.nbytes :].tolist() == [0xEE] * 3


def test_small_types_are_packed_from_the_lowest_bits() -> None:
    assert Element("int4").pack(values("int4", 3)).tolist() == [0x10, 0x02]
    negative = np.array([-1, -8], numpy_type("int4"))
    assert Element("int4").unpack(Element("int4").pack(negative), 2).tolist() == [-1, -8]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float8_e4m3fn"])
def test_poison_is_not_a_number_where_there_is_one(dtype: str) -> None:
    element = Element(dtype)
    data = np.full(8, element.poison, np.uint8)
    assert np.isnan(element.unpack(data, 2).astype(np.float32)).all()


@pytest.mark.parametrize(
    "layout",
    [
        Layout(Element("float16"), (2, 5, 3, 4), (24, 12, 4, 1), 1, 4),
        Layout(Element("float16"), (2, 5, 3, 4), (12, 12, 4, 1), 1, 8),
        Layout(Element("float32"), (2, 5, 3, 4), (60, 1, 20, 5)),
        Layout(Element("int8"), (1, 33, 2, 2), (8, 4, 2, 1), 1, 32),
    ],
    ids=["chw4", "hwc8", "hwc", "chw32"],
)
def test_formats_of_the_sdk_hold_the_same_array(layout: Layout) -> None:
    array = np.arange(np.prod(layout.shape)).reshape(layout.shape).astype(layout.element.numpy)
    data = np.full(layout.nbytes, 0xFF, np.uint8)
    layout.write(array, data)
    np.testing.assert_array_equal(layout.read(data), array)


def test_channels_come_in_vectors_and_the_rest_of_a_vector_is_zero() -> None:
    layout = Layout(Element("int8"), (1, 3, 1, 2), (2, 2, 2, 1), 1, 4)
    data = np.full(layout.nbytes, 0xFF, np.uint8)
    layout.write(np.array([[[[1, 2]], [[3, 4]], [[5, 6]]]], np.int8), data)
    assert data.tolist() == [1, 3, 5, 0, 2, 4, 6, 0]


@pytest.mark.parametrize("strides", [(4, 1), (9, 9)])
def test_the_order_is_what_the_context_says(strides: tuple[int, ...]) -> None:
    context: Any = SimpleNamespace(
        get_tensor_shape=lambda _: (3, 4), get_tensor_strides=lambda _: strides
    )
    engine: Any = SimpleNamespace(get_tensor_vectorized_dim=lambda _: -1)
    layout = layout_of(engine, context, "x", Element("float32"))
    assert layout.strides == (() if strides == (4, 1) else strides)
    if layout.strides:
        with pytest.raises(RunError, match="C order only"):
            layout_of(engine, context, "x", Element("int4"))


def test_types_without_a_place_here_are_named() -> None:
    dtype: Any = SimpleNamespace(name="COMPLEX")
    with pytest.raises(RunError, match="x: elements of type COMPLEX"):
        element_of("x", dtype)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [("int64", "int32"), ("uint8", "int32"), ("float64", "float32"), ("float32", "bfloat16")],
)
def test_values_that_fit_are_taken_over(given: str, wanted: str) -> None:
    array = values(given, 9)
    found = converted("x", array, Element(wanted))
    assert found.dtype == numpy_type(wanted)
    np.testing.assert_array_equal(found.astype(np.float64), array.astype(np.float64))


@pytest.mark.parametrize(
    ("array", "wanted"),
    [
        (np.array([1 << 40]), "int32"),
        (np.array([-1]), "uint8"),
        (np.array([1.0]), "int32"),
        (np.array([True]), "float32"),
        (np.array([1]), "bool"),
    ],
)
def test_values_that_do_not_are_refused(array: Any, wanted: str) -> None:
    with pytest.raises(RunError, match=f"input x: the engine takes {wanted}"):
        converted("x", array, Element(wanted))


@pytest.mark.parametrize(
    ("given", "declared", "expected"),
    [
        ("int32", "int64", "int64"),
        ("float32", "float64", "float64"),
        ("float16", "float32", "float32"),
        ("int32", "float32", "int32"),
        ("bool", "int32", "bool"),
        ("int32", None, "int32"),
        ("int32", "unknown", "int32"),
    ],
)
def test_outputs_take_the_declared_size_but_never_another_kind(
    given: str, declared: str | None, expected: str
) -> None:
    assert restored(values(given, 3), declared).dtype == numpy_type(expected)
