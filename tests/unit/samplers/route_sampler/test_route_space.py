from __future__ import annotations

import math

import numpy as np
import pytest

from smart_tuner.errors import UserInputError
from smart_tuner.samplers.route_sampler.space import RouteSpace

SPACE = RouteSpace.of(
    {"a": ("x", "y"), "b": ("1", "2", "3"), "c": ("z",)}, {"a": "y", "b": "1", "c": "z"}
)


def test_routes_and_parameters() -> None:
    assert SPACE.default == (1, 0, 0)
    assert SPACE.size == 6
    assert SPACE.decode((0, 2, 0)) == {"a": "x", "b": "3", "c": "z"}
    assert SPACE.changes((0, 0, 0)) == {"a": "x"}
    assert SPACE.encode({"b": "2"}) == (1, 1, 0)
    assert list(SPACE.distributions) == ["a", "b"]


@pytest.mark.parametrize("params", [{}, {"other": "x"}, {"a": "gone"}, {"b": 1}, {"a": True}])
def test_foreign_parameters_are_no_route(params: dict[str, object]) -> None:
    assert SPACE.encode(params) is None


def test_flags_mark_what_is_not_default() -> None:
    assert SPACE.alternatives == ((0, 0), (1, 1), (1, 2))
    assert SPACE.flags([(1, 0, 0), (0, 2, 0)]).tolist() == [[0, 0, 0], [1, 0, 1]]
    assert SPACE.flags([]).shape == (0, 3)


def test_every_route_is_around_every_other() -> None:
    for start in ((1, 0, 0), (0, 2, 0)):
        others = list(SPACE.around(start, np.random.default_rng(0)))
        assert len(others) == len(set(others)) == SPACE.size - 1
        distances = [sum(a != b for a, b in zip(start, o, strict=True)) for o in others]
        assert distances == sorted(distances)


@pytest.mark.parametrize(
    ("choices", "defaults"),
    [
        ({"a": (1, True)}, {"a": 1}),
        ({"a": ("x", "x")}, {"a": "x"}),
        ({"a": ()}, {"a": "x"}),
        ({"a": ("x", "y")}, {"a": "z"}),
        ({"a": ("x", "y")}, {}),
        ({"a": ("x", math.nan)}, {"a": "x"}),
    ],
)
def test_malformed_spaces_are_refused_by_name(choices: dict, defaults: dict) -> None:  # type: ignore[type-arg]
    with pytest.raises(UserInputError, match="Knob a"):
        RouteSpace.of(choices, defaults)
