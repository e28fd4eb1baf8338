from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from smart_tuner.bench.workloads import choose_workloads, recorded_workloads
from smart_tuner.errors import UserInputError

if TYPE_CHECKING:
    from pathlib import Path


def test_workloads_have_something_to_gain_and_seeds_share_none() -> None:
    first = choose_workloads(["sparse", "gated"], 4, seed=0, knobs=30, least_gain=1.05)
    assert [item.generator for item in first] == ["sparse"] * 4 + ["gated"] * 4
    assert all(item.compiler().attainable_gain() >= 1.05 for item in first[:4])
    again = choose_workloads(["sparse", "gated"], 4, seed=0, knobs=30, least_gain=1.05)
    other = choose_workloads(["sparse", "gated"], 4, seed=1, knobs=30, least_gain=1.05)
    assert again == first
    assert not {item.seed for item in first} & {item.seed for item in other}


def test_more_workloads_begin_with_the_same_ones() -> None:
    few = choose_workloads(["sparse"], 2, seed=3, knobs=20, least_gain=1.0)
    assert choose_workloads(["sparse"], 5, seed=3, knobs=20, least_gain=1.0)[:2] == few


def test_null_workloads_need_no_gain() -> None:
    assert len(choose_workloads(["null"], 3, seed=0, knobs=10, least_gain=1.03)) == 3


@pytest.mark.parametrize(
    ("generators", "count", "seed", "gain", "message"),
    [
        (["nope"], 1, 0, 1.0, "No generator 'nope'; there are"),
        (["sparse"], 0, 0, 1.0, "at least one workload"),
        (["sparse"], 1, -1, 1.0, "a seed of 0 to 4,293"),
        (["sparse"], 1, 4294, 1.0, "a seed of 0 to 4,293"),
        (["sparse"], 1, 0, 50.0, "Only 0 of 50 workloads of sparse"),
    ],
)
def test_what_cannot_be_chosen_is_said(
    generators: list[str], count: int, seed: int, gain: float, message: str
) -> None:
    with pytest.raises(UserInputError, match=message):
        choose_workloads(generators, count, seed=seed, knobs=3, least_gain=gain)


def test_recorded_workloads_are_refused_where_nothing_can_be_gained(t4_file: Path) -> None:
    found = recorded_workloads([t4_file, t4_file], 2, seed=1, least_gain=1.03)
    assert len(found) == 2
    assert found[0].compiler() is found[1].compiler()
    with pytest.raises(UserInputError, match=r"can gain 1\.500x at most"):
        recorded_workloads([t4_file], 1, seed=0, least_gain=2.0)
