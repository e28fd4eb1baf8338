from __future__ import annotations

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from smart_tuner.samplers.route_sampler.crashes import Crashes, Progress, learn_crashes


def crashes(bad: list[set[int]], good: list[set[int]], size: int = 6) -> Crashes:
    rows = np.zeros((len(good) + len(bad), size), dtype=bool)
    for row, values in zip(rows, [*good, *bad], strict=True):
        row[list(values)] = True
    return learn_crashes(rows, np.arange(len(rows)) >= len(good))


def risk(logs: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return -np.expm1(-logs)


def test_a_failed_group_shares_the_blame() -> None:
    single = risk(crashes([{0, 1, 2}], []).single)
    assert 0.3 < single[0] == single[1] == single[2] < 0.4
    assert max(single[3:]) < 0.15


def test_the_only_member_not_cleared_is_the_culprit() -> None:
    single = risk(crashes([{0, 1, 2}], [{1, 3}, {2}]).single)
    assert single[0] > 0.8
    assert max(single[1:4]) < 0.02


def test_the_common_member_of_failed_groups_is_the_culprit() -> None:
    single = risk(crashes([{0, 1, 2}, {0, 3, 4}], []).single)
    assert single[0] > 0.6
    assert max(single[1:]) < 0.35


def test_a_group_of_cleared_members_blames_a_pair() -> None:
    learnt = crashes([{1, 2}], [{1, 0}, {2, 3}, {1}, {2}])
    assert max(risk(learnt.single)[[1, 2]]) < 0.2
    assert risk(learnt.pair)[1, 2] > 0.7
    assert risk(learnt.pair)[1, 0] == 0
    assert 0 < risk(learnt.pair)[1, 3] < 0.05


rows = st.lists(st.sets(st.integers(0, 4)), max_size=8)


@given(bad=rows, good=rows)
def test_any_history_gives_probabilities(bad: list[set[int]], good: list[set[int]]) -> None:
    learnt = crashes(bad, good, size=5)
    for figures in (risk(learnt.single), risk(learnt.pair)):
        assert ((figures >= 0) & (figures < 1)).all()


@given(
    bad=rows, good=rows, seed=st.integers(0, 99), stops=st.lists(st.integers(0, 16), max_size=3)
)
def test_going_on_from_earlier_routes_changes_nothing(
    bad: list[set[int]], good: list[set[int]], seed: int, stops: list[int]
) -> None:
    flags = np.array([[k in row for k in range(5)] for row in [*bad, *good]], dtype=bool)
    flags = flags.reshape(-1, 5)
    failed = np.arange(len(flags)) < len(bad)
    order = np.random.default_rng(seed).permutation(len(flags))
    flags, failed = flags[order], failed[order]
    progress = Progress.start(5)
    for stop in sorted(stops):
        progress = progress.after(flags[:stop], failed[:stop])
        assert progress.leads_to(flags, failed)
    on, anew = learn_crashes(flags, failed, None, progress), learn_crashes(flags, failed)
    assert np.array_equal(on.single, anew.single)
    assert np.array_equal(on.pair, anew.pair)
    assert np.array_equal(on.cleared, anew.cleared)


def test_another_past_is_noticed() -> None:
    flags = np.eye(4, dtype=bool)
    failed = np.array([True, False, True, False])
    progress = Progress.start(4).after(flags, failed)
    assert progress.leads_to(np.vstack([flags, flags]), np.concatenate([failed, failed]))
    assert not progress.leads_to(flags[:3], failed[:3])
    assert not progress.leads_to(flags, ~failed)
    assert not progress.leads_to(flags[::-1], failed)
    on = learn_crashes(flags, ~failed, None, progress)
    assert np.array_equal(on.single, learn_crashes(flags, ~failed).single)
