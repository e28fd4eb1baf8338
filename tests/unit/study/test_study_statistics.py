import math

import numpy as np
import pytest

from smart_tuner.study.proof.gain import Gain
from smart_tuner.study.proof.statistics import gain_over_builds


@pytest.mark.parametrize("builds", [3, 5])
def test_the_interval_covers_the_truth_in_95_of_100_studies(builds: int) -> None:
    """Build noise of 0.9 % in both arms, measurement noise of 0.3 %."""
    rng = np.random.default_rng(7)
    truth, studies = math.log(0.9), 4000
    noise = math.hypot(0.009, 0.009, 0.003)
    covered = 0
    for ratios in truth + noise * rng.standard_normal((studies, builds)):
        gain = gain_over_builds(ratios.tolist())
        covered += gain.low <= math.exp(-truth) <= gain.high
    assert covered / studies == pytest.approx(0.95, abs=0.012)


def test_a_null_route_wins_by_chance_in_about_one_of_forty_studies() -> None:
    rng = np.random.default_rng(8)
    ratios = 0.0127 * rng.standard_normal((4000, 5))
    wins = sum(gain_over_builds(row.tolist()).low > 1.0 for row in ratios)
    assert wins / 4000 == pytest.approx(0.025, abs=0.009)


def test_one_build_has_no_interval() -> None:
    gain = gain_over_builds([-0.1])
    assert gain.value == pytest.approx(math.exp(0.1))
    assert (gain.low, gain.high, gain.samples) == (0.0, math.inf, 1)
    assert str(gain) == "1.105x (no interval from 1 sample)"


def test_an_interval_that_tells_nothing_is_not_spelled_out() -> None:
    wild = gain_over_builds([-1.4, 0.0])
    assert wild.high > 1000
    assert str(wild) == "2.014x (95 % interval wider than tenfold)"


def test_faster_is_above_one_and_the_interval_is_around_it() -> None:
    gain = gain_over_builds([-0.1, -0.11, -0.09])
    assert 1 < gain.low < gain.value < gain.high
    assert gain.value == pytest.approx(math.exp(0.1))
    assert str(gain) == f"{gain.value:.3f}x (95 % interval {gain.low:.3f}-{gain.high:.3f})"


def test_equal_builds_leave_no_doubt() -> None:
    assert gain_over_builds([0.0, 0.0]) == Gain(1.0, 1.0, 1.0, 2)


def test_a_gain_from_a_log_ratio() -> None:
    gain = Gain.from_log_ratio(-0.2, 0.1, 8)
    assert (gain.value, gain.low, gain.high) == pytest.approx(
        (math.exp(0.2), math.exp(0.1), math.exp(0.3))
    )
