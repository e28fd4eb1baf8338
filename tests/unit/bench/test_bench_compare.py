from __future__ import annotations

import numpy as np
import pytest

from smart_tuner.bench.compare import bootstrap_mean, compare
from smart_tuner.bench.score import POOLED
from tests.unit.bench.making import run


def paired(difference: float, count: int = 30) -> list[object]:
    noise = np.random.default_rng(1).normal(0, 0.05, count)
    return [
        item
        for seed in range(count)
        for item in (
            run("ours", (0.5 + difference + noise[seed],), seed=seed),
            run("same", (0.5,), seed=seed),
            run("rival", (0.5,), seed=seed),
        )
    ]


def test_a_clear_difference_is_found_and_equals_are_not() -> None:
    found = {item.sampler: item for item in compare(paired(0.1), "rival")}  # type: ignore[arg-type]
    assert set(found) == {"ours", "same"}
    assert found["ours"].mean == pytest.approx(0.1, abs=0.03)
    assert 0 < found["ours"].low < found["ours"].mean < found["ours"].high
    assert found["ours"].p_value < 0.001
    assert (found["same"].mean, found["same"].p_value) == (0, 1)


def test_looking_often_widens_intervals() -> None:
    one = [item for item in paired(0.1) if item.task.sampler != "same"]  # type: ignore[attr-defined]
    (alone,) = compare(one, "rival")  # type: ignore[arg-type]
    many = [
        run(f"other {number}", (0.5 + 0.1 * (-1) ** (seed + number),), seed=seed)
        for number in range(8)
        for seed in range(30)
    ]
    corrected = {item.sampler: item for item in compare([*one, *many], "rival")}  # type: ignore[list-item]
    assert corrected["ours"].p_value > alone.p_value
    assert corrected["ours"].low < alone.low


def test_corrected_p_values_follow_holm() -> None:
    runs = [run("rival", (0.5,), seed=seed) for seed in range(12)]
    for number, better in enumerate((12, 10, 9)):
        runs += [
            run(f"s{number}", (0.6 if seed < better else 0.4,), seed=seed) for seed in range(12)
        ]
    values = [item.p_value for item in compare(runs, "rival")]
    assert values == sorted(values)
    assert all(0 <= value <= 1 for value in values)


def test_only_pairs_count_and_null_does_not() -> None:
    runs = [run("a", seed=1), run("a", seed=2), run("rival", seed=2)]
    runs += [run(name, generator="null", optimum=0.0) for name in ("a", "rival")]
    assert {item.workloads for item in compare(runs, "rival")} == {1}


def test_generators_are_compared_too_when_there_are_several() -> None:
    runs = [run(name, generator=kind) for name in ("a", "rival") for kind in ("sparse", "dense")]
    assert {item.group for item in compare(runs, "rival")} == {POOLED, "sparse", "dense"}


def test_the_bootstrap_covers_a_mean() -> None:
    random = np.random.default_rng(0)
    hits = 0
    for _ in range(100):
        low, high = bootstrap_mean(random.normal(0.0, 1.0, 40), 0.05)
        hits += low <= 0 <= high
    assert hits >= 88
