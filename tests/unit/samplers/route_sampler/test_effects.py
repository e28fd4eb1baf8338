from __future__ import annotations

import numpy as np

from smart_tuner.samplers.route_sampler.effects import Prior, fit_effects


def test_sparse_effects_are_found() -> None:
    generator = np.random.default_rng(0)
    flags = generator.random((120, 200)) < 0.02
    truth = np.zeros(200)
    truth[[3, 50, 120]] = -0.05, 0.08, -0.03
    effects = fit_effects(flags, flags @ truth + generator.normal(0, 0.003, 120), Prior.cold(200))
    assert set(np.argsort(-np.abs(effects.mean))[:2]) == {3, 50}
    assert abs(effects.mean[3] + 0.05) < 0.015
    draws = np.array([effects.sample(generator) for _ in range(200)])
    assert abs(draws.mean(axis=0) - effects.mean).max() < 0.01
    untried = ~flags.any(axis=0)
    assert draws.std(axis=0)[3] < 0.02
    if untried.any():
        assert (effects.mean[untried] == 0).all()


def test_no_trial_and_no_value() -> None:
    generator = np.random.default_rng(0)
    nothing = fit_effects(np.zeros((0, 4), dtype=bool), np.zeros(0), Prior.cold(4))
    assert nothing.mean.tolist() == [0, 0, 0, 0]
    assert nothing.sample(generator).shape == (4,)
    assert (
        fit_effects(np.zeros((3, 0), dtype=bool), np.zeros(3), Prior.cold(0))
        .sample(generator)
        .size
        == 0
    )
