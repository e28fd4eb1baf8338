"""Engines of two environments side by side, and failures that are told apart."""

import sys
from pathlib import Path

import pytest

from smart_tuner.engine.build import BuildRequest
from smart_tuner.engine.platform import Platform
from smart_tuner.errors import TrialError
from smart_tuner.gate.measure import CannotCompare, Side, SideBySide
from smart_tuner.measure.stop_rule import StopRule
from smart_tuner.model.load import load_model
from smart_tuner.model.prepare import InputOptions, prepare_workload
from smart_tuner.route.build_route import BuildRoute
from smart_tuner.study.progress.events import silent
from smart_tuner.trial.options import EvaluatorOptions
from tests.unit.gate.pipelines import Pipeline


def side(model: Path, python: str = "", **route: str) -> Side:
    request = BuildRequest(model=model, route=BuildRoute(tuple(route.items())))
    return Side("it", request, None, EvaluatorOptions("replay", python=python))


@pytest.fixture
def bench(begun: Pipeline, tmp_path: Path) -> SideBySide:
    options = InputOptions()
    workload, _ = prepare_workload(load_model(begun.model), options, tmp_path / "references")
    platform = Platform("simulated", "", "", "")
    return SideBySide(workload, platform, StopRule.fixed(2), tmp_path / "rounds", silent)


def test_an_engine_of_another_environment_is_measured_beside_ours(
    begun: Pipeline, bench: SideBySide, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("smart_tuner.trial.watch._NOTABLE_LOAD", -1.0)
    before, candidate = side(begun.model, sys.executable), side(begun.model, speed="fast")
    rounds = bench.rounds(before, candidate, 2, lambda _: True)
    assert [round_.log_ratio for round_ in rounds] == pytest.approx([-0.4, -0.4], abs=0.02)
    assert rounds[0].before_ms == pytest.approx(2.0, rel=0.05)
    assert rounds[1].notes[-1].startswith("Other processes kept")


def test_it_is_said_which_of_the_two_does_not_work(begun: Pipeline, bench: SideBySide) -> None:
    good, broken = side(begun.model), side(begun.model, grave="yes")
    with pytest.raises(CannotCompare, match="does not load here any more"):
        bench.rounds(broken, good, 2, lambda _: True)
    with pytest.raises(TrialError) as caught:
        bench.rounds(good, broken, 2, lambda _: True)
    assert not isinstance(caught.value, CannotCompare)
