"""Cover: values meet that never met, at the expense of none that matters."""

from __future__ import annotations

import numpy as np
import pytest

from smart_tuner.samplers.route_sampler.allowances import FULL, Allowances
from smart_tuner.samplers.route_sampler.climb import Costs
from smart_tuner.samplers.route_sampler.cover import RISK, cover
from smart_tuner.samplers.route_sampler.crashes import Crashes

KNOBS = 40
VALUES = 2 * KNOBS


def costs(
    *,
    effect: np.ndarray | None = None,
    cleared: np.ndarray | None = None,
    pair_risk: float = 0.0,
    use: float = 0.0,
) -> Costs:
    """Forty knobs with two values beside the default each."""
    return Costs(
        knob=np.repeat(np.arange(KNOBS), 2),
        effect=np.zeros(VALUES) if effect is None else effect,
        crashes=Crashes(
            single=np.zeros(VALUES),
            pair=np.full((VALUES, VALUES), pair_risk),
            cleared=np.zeros((VALUES, VALUES), dtype=bool) if cleared is None else cleared,
        ),
        allowances=Allowances(
            np.zeros(1),
            np.full((1, VALUES), use),
            np.zeros((1, VALUES)),
            np.array([FULL]),
            np.ones(1),
        ),
    )


def route_of(*values: int) -> np.ndarray:
    """A route with these values."""
    route = np.zeros(VALUES, dtype=bool)
    route[list(values)] = True
    return route


def test_a_few_routes_let_all_values_meet() -> None:
    generator = np.random.default_rng(0)
    cleared = np.zeros((VALUES, VALUES), dtype=bool)
    other_knob = np.repeat(np.arange(KNOBS), 2)[:, None] != np.repeat(np.arange(KNOBS), 2)
    for _ in range(14):
        route = cover(route_of(), costs(cleared=cleared), np.ones(VALUES, bool), generator)
        assert route.reshape(KNOBS, 2).sum(axis=1).max() == 1, "one value a knob"
        cleared[np.ix_(route, route)] = True
    assert cleared[other_knob].mean() > 0.94


def test_what_matters_stays_and_what_harms_stays_out() -> None:
    effect = np.zeros(VALUES)
    effect[0], effect[4], effect[5] = -0.05, 0.02, 0.02
    for seed in range(10):
        route = cover(
            route_of(0), costs(effect=effect), np.ones(VALUES, bool), np.random.default_rng(seed)
        )
        assert route[0], "a value that gains keeps its place"
        assert not route[[4, 5]].any(), "a value that is known to cost is not set"
        assert route.sum() == KNOBS - 1


def test_values_that_never_ran_are_left_alone() -> None:
    tried = route_of(*range(0, VALUES, 4))
    route = cover(route_of(), costs(), tried, np.random.default_rng(0))
    assert np.array_equal(route, tried)


def test_the_risk_of_unknown_pairs_is_bounded() -> None:
    found = costs(pair_risk=0.01)
    route = cover(route_of(), found, np.ones(VALUES, bool), np.random.default_rng(0))
    count = int(route.sum())
    assert 5 < count < KNOBS
    assert 0.01 * count * (count - 1) / 2 == pytest.approx(RISK, rel=0.5)


def test_allowances_are_kept() -> None:
    route = cover(route_of(), costs(use=0.1), np.ones(VALUES, bool), np.random.default_rng(0))
    assert route.sum() == 9


def test_a_route_whose_values_all_met_is_left_as_it_is() -> None:
    start = route_of(*range(0, VALUES, 2))
    met = np.ones((VALUES, VALUES), dtype=bool)
    route = cover(start, costs(cleared=met), np.ones(VALUES, bool), np.random.default_rng(0))
    assert np.array_equal(route, start)
