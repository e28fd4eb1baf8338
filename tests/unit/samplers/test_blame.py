from __future__ import annotations

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from smart_tuner.samplers.blame import blame, unexplained


def groups(*members: set[int], size: int = 6) -> npt.NDArray[np.bool_]:
    flags = np.zeros((len(members), size), dtype=bool)
    for row, values in zip(flags, members, strict=True):
        row[list(values)] = True
    return flags


def test_a_failed_group_shares_the_blame() -> None:
    risk = blame(groups({0, 1, 2}), groups())
    assert 0.3 < risk[0] == risk[1] == risk[2] < 0.4
    assert max(risk[3:]) < 0.05


def test_the_only_member_not_cleared_is_the_culprit() -> None:
    risk = blame(groups({0, 1, 2}), groups({1, 3}, {2}))
    assert risk[0] > 0.9
    assert max(risk[1:4]) < 0.01


def test_the_common_member_of_failed_groups_is_the_culprit() -> None:
    risk = blame(groups({0, 1, 2}, {0, 3, 4}), groups())
    assert risk[0] > 0.9
    assert max(risk[1:]) < 0.1


def test_a_group_of_cleared_members_is_unexplained() -> None:
    bad, good = groups({1, 2}, {0, 3}), groups({1}, {2}, {3})
    risk = blame(bad, good)
    assert risk[0] > 0.9
    assert unexplained(bad, risk).tolist() == bad[:1].tolist()


rows = st.lists(st.lists(st.booleans(), min_size=5, max_size=5), max_size=8)


@given(bad=rows, good=rows)
def test_any_history_gives_probabilities(bad: list[list[bool]], good: list[list[bool]]) -> None:
    flags = [np.array(table, dtype=bool).reshape(-1, 5) for table in (bad, good)]
    risk = blame(*flags)
    assert ((risk > 0) & (risk < 1)).all()
