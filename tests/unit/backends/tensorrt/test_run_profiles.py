from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from smart_tuner.backends.tensorrt.profiles import Range, fixed_profile


def network(*outputs: tuple[int, ...]) -> Any:
    """A network with one fixed input and these outputs."""
    made = [SimpleNamespace(name=f"y{index}", shape=shape) for index, shape in enumerate(outputs)]
    return SimpleNamespace(
        num_inputs=1,
        num_outputs=len(made),
        get_input=lambda _: SimpleNamespace(name="x", shape=(4, 16)),
        get_output=made.__getitem__,
    )


def test_sizes_that_data_decide_ask_for_a_profile_of_fixed_inputs() -> None:
    shape = (4, 16)
    assert fixed_profile(network((4, 1), (2, -1))) == [{"x": Range(shape, shape, shape)}]


@pytest.mark.parametrize("outputs", [[(4, 1)], [(), (4, 0)]])
def test_fixed_outputs_ask_for_none(outputs: list[tuple[int, ...]]) -> None:
    assert fixed_profile(network(*outputs)) == []
