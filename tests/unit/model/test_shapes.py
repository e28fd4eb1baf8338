from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_tuner.errors import UserInputError
from smart_tuner.model.shapes import format_shapes, parse_shapes, resolve_shapes
from smart_tuner.model.spec import ModelSpec, TensorSpec

if TYPE_CHECKING:
    from smart_tuner.model.spec import Dimension


def model(**shapes: tuple[Dimension, ...] | None) -> ModelSpec:
    inputs = tuple(TensorSpec(name, "float32", shape) for name, shape in shapes.items())
    return ModelSpec(Path("/m.onnx"), "0", 1, inputs, (), 10, {"": 17}, {})


SHAPES = st.dictionaries(
    st.text(min_size=1, max_size=10),
    st.lists(st.integers(0, 10**6), max_size=6).map(tuple),
    min_size=1,
    max_size=5,
)


@given(SHAPES)
def test_shapes_survive_being_written_and_read(shapes: dict[str, tuple[int, ...]]) -> None:
    assert parse_shapes([format_shapes(shapes)]) == shapes
    assert parse_shapes([format_shapes({n: s}) for n, s in shapes.items()]) == shapes


@pytest.mark.parametrize(
    "value",
    ["", "x", "1x", "x1", "1xx2", "-1x3", "1.5", "1 x 3", "axb", "1x3x", "9" * 16, "\u0661"],
)
def test_what_is_no_shape_is_refused(value: str) -> None:
    with pytest.raises(UserInputError, match=r"1x3x640x640"):
        parse_shapes([f"x:{value}"])


def test_a_name_may_be_repeated_with_the_same_shape_only() -> None:
    assert parse_shapes(["x:1x2", "x:1x2,y:scalar"]) == {"x": (1, 2), "y": ()}
    with pytest.raises(UserInputError, match="two shapes, 1x2 and 1x3"):
        parse_shapes(["x:1x2", "x:1x3"])


def test_static_shapes_need_nothing() -> None:
    resolved = resolve_shapes(model(a=(1, 0), b=()), {})
    assert resolved.shapes == {"a": (1, 0), "b": ()}
    assert resolved.notes == ()


def test_an_unknown_input_is_answered_with_the_known_ones() -> None:
    with pytest.raises(UserInputError, match="no input 'z'; its inputs: 'a', 'b'"):
        resolve_shapes(model(a=(1,), b=(2,)), {"z": (1,)})


def test_given_sizes_must_fit_the_model() -> None:
    with pytest.raises(
        UserInputError, match=r"'a' is \(N, 3\) in the model, 1x3x4 given: 2 dimensions"
    ):
        resolve_shapes(model(a=("N", 3)), {"a": (1, 3, 4)})
    with pytest.raises(UserInputError, match="dimension 1 has to be 3"):
        resolve_shapes(model(a=("N", 3)), {"a": (1, 4)})
    with pytest.raises(UserInputError, match="'N', which is 2 elsewhere; give equal sizes"):
        resolve_shapes(model(a=("N", "N")), {"a": (2, 3)})


def test_a_given_size_settles_its_symbol_everywhere() -> None:
    resolved = resolve_shapes(model(a=("N", "L"), b=("L", 1), c=("N",)), {"a": (2, 7)})
    assert resolved.shapes == {"a": (2, 7), "b": (7, 1), "c": (2,)}
    assert resolved.symbols == {"N": 2, "L": 7}


def test_symbols_known_from_one_input_fill_the_others() -> None:
    resolved = resolve_shapes(model(ids=("N", "L"), mask=("N", "L")), {"ids": (2, 7)})
    assert resolved.shapes == {"ids": (2, 7), "mask": (2, 7)}
    assert resolved.notes == ()


def test_a_size_given_for_a_later_input_counts_for_an_earlier_one() -> None:
    resolved = resolve_shapes(model(a=("N", 3), b=("N", None)), {"b": (4, 5)})
    assert resolved.shapes == {"a": (4, 3), "b": (4, 5)}


def test_a_free_first_size_is_one_and_said_once() -> None:
    resolved = resolve_shapes(model(a=("N", 3), b=("N", 2), c=(None, 1)), {})
    assert resolved.shapes == {"a": (1, 3), "b": (1, 2), "c": (1, 1)}
    assert len(resolved.notes) == 1
    assert (
        "'a', 'b', 'c': first dimension taken as 1 (batch); give --shapes a:1x3"
        in (resolved.notes[0])
    )


def test_unknown_marks_are_independent() -> None:
    shape = (None, 3, None, None)
    resolved = resolve_shapes(model(x=shape), {"x": (1, 3, 48, 192)})
    assert resolved.shapes == {"x": (1, 3, 48, 192)}


def test_a_length_that_also_comes_first_is_asked_for() -> None:
    with pytest.raises(UserInputError, match="--shapes a:LxM,b:MxL"):
        resolve_shapes(model(a=("L", "M"), b=("M", "L")), {})


@pytest.mark.parametrize(
    ("shape", "hint"),
    [
        ((None, 3, None, None), "--shapes x:1x3xHxW with numbers in place of H, W."),
        (("b", "max_len"), "--shapes x:1xMAX_LEN with numbers in place of MAX_LEN."),
        ((2, None), "--shapes x:2xL with numbers in place of L."),
        ((1, None, 2, 3, 4, 5), "--shapes x:1xD1x2x3x4x5 with numbers in place of D1."),
        ((1, "a b"), "--shapes x:1xL with numbers in place of L."),
        (None, "--shapes x:AxBxC with numbers in place of A, B, C."),
    ],
)
def test_open_sizes_are_asked_for_with_what_to_type(
    shape: tuple[Dimension, ...] | None, hint: str
) -> None:
    with pytest.raises(UserInputError, match=re.escape(hint)):
        resolve_shapes(model(x=shape), {})


def test_only_open_inputs_are_asked_for() -> None:
    with pytest.raises(UserInputError, match=r"--shapes b:1xL with") as caught:
        resolve_shapes(model(a=(1, 2), b=("N", None)), {})
    assert "'a'" not in str(caught.value)
