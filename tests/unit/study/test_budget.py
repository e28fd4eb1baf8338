import math
import time

import pytest

from smart_tuner.study.progress.budget import LEAST_TRIAL_SECONDS, Budget


def budget(seconds: float, *, spent: float = 0.0, trials: int | None = None) -> Budget:
    return Budget(seconds, trials, started=time.monotonic() - spent)


def test_time_of_all_sessions_counts() -> None:
    later = Budget(100.0, spent_before=30.0, started=time.monotonic() - 20.0)
    assert later.spent == pytest.approx(50.0, abs=1.0)
    assert later.left == pytest.approx(50.0, abs=1.0)


def test_what_is_left_is_never_negative() -> None:
    over = budget(10.0, spent=20.0)
    assert over.left == 0
    assert over.search_left([]) == 0
    assert not over.allows_another([])


@pytest.mark.parametrize(
    ("seconds", "kept"), [(10.0, 5.0), (30.0, 15.0), (100.0, 30.0), (600.0, 180.0), (9e9, 240.0)]
)
def test_a_share_is_kept_back_for_finalists(seconds: float, kept: float) -> None:
    assert budget(seconds).finalist_seconds == pytest.approx(kept)
    assert budget(seconds).search_left([]) == pytest.approx(seconds - kept, abs=1.0)


def test_slow_builds_keep_back_more_but_leave_most_to_the_search() -> None:
    assert budget(600.0).search_left([30.0] * 5) == pytest.approx(600 - 240, abs=1.0)
    assert budget(600.0).search_left([200.0] * 5) == pytest.approx(600 - 240, abs=1.0)
    assert budget(480.0).search_left([]) == pytest.approx(480 - 144, abs=1.0)
    assert budget(480.0).search_left([45.0]) == pytest.approx(480 - 192, abs=1.0)


def test_long_budgets_keep_back_a_whole_confirmation() -> None:
    """Five builds a side are wanted for a verdict that is more than indicative."""
    assert budget(7200.0).search_left([45.0] * 5) == pytest.approx(7200 - 24 * 45, abs=1.0)
    assert budget(7200.0).search_left([1.0] * 5) == pytest.approx(7200 - 240, abs=1.0)
    assert budget(7200.0).search_left([300.0] * 5) == pytest.approx(7200 - 0.4 * 6000, abs=1.0)


def test_the_number_of_trials_is_a_limit_too() -> None:
    assert budget(1000.0, trials=3).allows_another([1.0, 1.0])
    assert not budget(1000.0, trials=3).allows_another([1.0, 1.0, 1.0])
    assert not budget(1000.0, trials=3).allows_another([1.0] * 7)


def test_the_search_ends_for_want_of_time_or_of_trials() -> None:
    assert budget(1000.0, trials=10).search_ends_in([2.0] * 4) == pytest.approx(12.0)
    assert budget(1000.0, trials=3).search_ends_in([2.0] * 4) == 0
    assert budget(1000.0, trials=10_000).search_ends_in([2.0] * 4) == pytest.approx(760, abs=1.0)
    assert budget(1000.0, trials=10).search_ends_in([]) == pytest.approx(760, abs=1.0)
    assert budget(1000.0).search_ends_in([2.0]) == pytest.approx(760, abs=1.0)


def test_the_search_has_all_of_it_while_there_is_nothing_to_confirm() -> None:
    late = budget(100.0, spent=75.0)
    assert not late.allows_another([2.0])
    late.keeps_back = False
    assert late.search_left([2.0]) == pytest.approx(25.0, abs=1.0)
    assert late.allows_another([2.0])
    assert not late.allows_another([20.0])
    assert late.trial_deadline([2.0], 300.0) == pytest.approx(25.0, abs=1.0)


def test_a_trial_that_would_overrun_the_budget_is_not_begun() -> None:
    nearly = budget(100.0, spent=58.0)  # 12 s of search are left
    assert nearly.allows_another([])
    assert nearly.allows_another([3.0])
    assert not nearly.allows_another([10.0])
    assert nearly.allows_another([10.0] * 30 + [1.0] * 20), "the latest trials tell most"


def test_an_endless_budget_ends_by_trials_alone() -> None:
    endless = budget(math.inf, trials=2)
    assert endless.allows_another([1e6])
    assert not endless.allows_another([1e6, 1e6])
    assert endless.trial_deadline([1e6], 300.0) == 300.0


def test_a_trial_never_gets_more_time_than_the_budget_has() -> None:
    assert budget(1000.0).trial_deadline([], 300.0) == 300.0
    assert budget(300.0).trial_deadline([], 300.0) == pytest.approx(210.0, abs=1.0)
    late = budget(300.0, spent=209.0)
    assert late.trial_deadline([], 300.0) == LEAST_TRIAL_SECONDS
    tiny = budget(10.0, spent=4.0)
    assert tiny.trial_deadline([], 300.0) == pytest.approx(6.0, abs=1.0)
