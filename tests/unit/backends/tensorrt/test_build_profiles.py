"""Which shapes an engine must run, settled without any compiler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_tuner.backends.tensorrt.profiles import Range, plan_profiles
from smart_tuner.backends.tensorrt.settings import BuildSettings
from smart_tuner.errors import UserInputError
from tests.fake_tensorrt.network import Tensor

if TYPE_CHECKING:
    from smart_tuner.backends.tensorrt import api

FREE = (-1, 3, -1)
sizes = st.integers(1, 64)
shapes = st.tuples(sizes, st.just(3), sizes)


def tensor(shape: tuple[int, ...] = FREE, name: str = "x", **more: Any) -> api.Tensor:
    made = Tensor(name, shape, "FLOAT", [""] * len(shape), **more)
    return cast("api.Tensor", made)


@given(st.lists(shapes, min_size=1, max_size=5))
def test_a_shared_profile_spans_all_points_and_is_tuned_for_the_first(
    points: list[tuple[int, ...]],
) -> None:
    (profile,) = plan_profiles([tensor()], BuildSettings(), [{"x": point} for point in points])

    assert profile["x"].opt == points[0]
    assert profile["x"].min == tuple(map(min, zip(*points, strict=True)))
    assert profile["x"].max == tuple(map(max, zip(*points, strict=True)))


@given(
    st.lists(shapes, max_size=3), st.fixed_dictionaries({}, optional=dict.fromkeys("lmh", shapes))
)
def test_whatever_is_given_a_profile_is_in_order_or_refused(
    points: list[tuple[int, ...]], given_shapes: dict[str, tuple[int, ...]]
) -> None:
    low, opt, high = ({"x": given_shapes[key]} if key in given_shapes else {} for key in "lmh")
    settings = BuildSettings(min_shapes=low, opt_shapes=opt, max_shapes=high)
    try:
        (profile,) = plan_profiles([tensor()], settings, [{"x": point} for point in points])
    except UserInputError:
        return
    found = profile["x"]
    for small, large in [(found.min, found.opt), (found.opt, found.max)] + [
        pair for point in points for pair in ((found.min, point), (point, found.max))
    ]:
        assert all(a <= b for a, b in zip(small, large, strict=True))
    assert low.get("x", found.min) == found.min
    assert opt.get("x", found.opt) == found.opt
    assert high.get("x", found.max) == found.max


def test_each_point_gets_a_profile_of_its_own_and_equal_ones_share_it() -> None:
    points = [{"x": (1, 3, 8)}, {"x": (4, 3, 8)}, {"x": (1, 3, 8)}]
    planned = plan_profiles([tensor()], BuildSettings(profiles="per_point"), points)

    assert [profile["x"].opt for profile in planned] == [(1, 3, 8), (4, 3, 8)]
    assert all(profile["x"].min == profile["x"].max for profile in planned)


def test_fixed_inputs_stand_in_no_profile() -> None:
    inputs = [tensor(), tensor((1, 3), "fixed")]
    (profile,) = plan_profiles(inputs, BuildSettings(), [{"x": (1, 3, 8), "fixed": (1, 3)}])
    assert profile.keys() == {"x"}
    assert plan_profiles(inputs[1:], BuildSettings(), [{"fixed": (1, 3)}]) == []


def test_inputs_that_the_compiler_dropped_do_no_harm() -> None:
    (profile,) = plan_profiles([tensor()], BuildSettings(), [{"x": (1, 3, 8), "gone": (5,)}])
    assert profile.keys() == {"x"}


def test_the_values_of_a_shape_tensor_are_asked_for_and_taken() -> None:
    sizes_input = tensor((2,), "sizes", is_shape_tensor=True)
    with pytest.raises(UserInputError, match=r"Input 'sizes' holds sizes .* give the values"):
        plan_profiles([sizes_input], BuildSettings(), [{"sizes": (2,)}])
    settings = BuildSettings(min_shapes={"sizes": (8, 8)}, max_shapes={"sizes": (64, 32)})
    (profile,) = plan_profiles([sizes_input], settings, [{"sizes": (2,)}])
    assert profile == {"sizes": Range((8, 8), (64, 32), (64, 32), is_values=True)}
