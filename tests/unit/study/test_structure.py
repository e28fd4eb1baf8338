from dataclasses import dataclass, replace

import optuna
import pytest

from smart_tuner.measure.latency import Comparison, LatencySummary
from smart_tuner.route.build_route import BuildRoute
from smart_tuner.study.search.structure import ENOUGH, StructureQuestion
from smart_tuner.trial.trial import Trial, TrialOutcome

SUMMARY = LatencySummary(8, *(1.0,) * 8)


@dataclass
class Pretender:
    """Only remembers whether it was told to trust."""

    trusts: bool = False

    def trust_structure(self) -> None:
        self.trusts = True


def alike(ratio: float = 0.004) -> Trial:
    comparison = Comparison("p", (ratio,) * 4, ratio, 0.002, SUMMARY, SUMMARY, 0.1)
    route = BuildRoute((("a", "on"),))
    return Trial(route, TrialOutcome.FEASIBLE, comparisons=(comparison,), is_alike=True)


def question(study: optuna.Study, evaluator: Pretender) -> StructureQuestion:
    return StructureQuestion(study, evaluator, {"p": 1.0})  # type: ignore[arg-type]


def test_ten_that_agree_are_enough_and_a_later_session_remembers() -> None:
    study, evaluator = optuna.create_study(), Pretender()
    asking = question(study, evaluator)
    said = [asking.learn(alike()) for _ in range(ENOUGH)]
    assert [bool(text) for text in said] == [*(False,) * (ENOUGH - 1), True]
    assert said[-1].startswith("10 of 10 engines that the compiler describes as the default's")
    assert evaluator.trusts
    later = Pretender()
    question(study, later).recall()
    assert later.trusts
    assert asking.learn(alike()) == "", "it is said once"


@pytest.mark.parametrize("place", [0, ENOUGH - 1, ENOUGH])
def test_one_that_disagrees_is_never_forgotten(place: int) -> None:
    study = optuna.create_study()
    trials = [alike() for _ in range(2 * ENOUGH)]
    trials[place] = alike(-0.05)
    for trial in trials:
        question(study, Pretender()).learn(trial)
    later = Pretender()
    question(study, later).recall()
    assert not later.trusts


def test_what_was_not_measured_or_is_not_alike_says_nothing() -> None:
    study, evaluator = optuna.create_study(), Pretender()
    for trial in (
        replace(alike(), is_alike=False),
        replace(alike(), unchanged=True),
        replace(alike(), comparisons=()),
    ):
        for _ in range(ENOUGH):
            question(study, evaluator).learn(trial)
    question(study, evaluator).recall()
    assert not evaluator.trusts
