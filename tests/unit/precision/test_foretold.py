from __future__ import annotations

import math

import numpy as np
import pytest

from smart_tuner.route.build_route import BuildRoute
from smart_tuner.storages.history import TrialRecord
from smart_tuner.study.search.foretold import foretold, violation_share
from smart_tuner.trial.trial import TrialOutcome

USE = {f"precision.r{i}": 0.05 * 2**i for i in range(5)}
CHOICES = dict.fromkeys(USE, ("keep", "int8"))


def record(number: int, *lowered: str, loss: float | None = None) -> TrialRecord:
    """A trial whose loss, in epsilons, is the sum of what its regions use."""
    share = sum(USE[name] for name in lowered) + 0.01 if loss is None else loss
    return TrialRecord(
        number=number,
        route=BuildRoute.of(dict.fromkeys(lowered, "int8"), dict.fromkeys(CHOICES, "keep")),
        outcome=TrialOutcome.FEASIBLE if share <= 1 else TrialOutcome.INFEASIBLE,
        value_ms=1.0,
        violation=math.log10(share),
    )


def study() -> list[TrialRecord]:
    generator = np.random.default_rng(1)
    records = [record(0), *(record(i + 1, name) for i, name in enumerate(USE))]
    for number in range(6, 40):
        mask = generator.random(len(USE)) < 0.5
        records.append(record(number, *(n for n, chosen in zip(USE, mask, strict=True) if chosen)))
    return records


def test_sums_are_foretold_once_each_region_was_seen_alone() -> None:
    found = foretold(study(), CHOICES)
    assert [item.number for item in found] == list(range(1, 40))
    assert not any(item.is_known for item in found[:5])
    assert all(item.is_known for item in found[5:])
    for item in found[5:]:
        assert item.expected == pytest.approx(item.found, rel=0.25, abs=0.05)


def test_nothing_is_learnt_from_later_trials() -> None:
    records = study()
    assert foretold(records[:12], CHOICES) == foretold(records, CHOICES)[:11]


def test_the_share_of_violations_counts_later_proposals_only() -> None:
    records = [record(n, loss=2.0 if n < 30 or n == 35 else 0.5) for n in range(40)]
    assert violation_share(records) == 0.1
    assert violation_share(records[:30]) is None
