from __future__ import annotations

import optuna

from smart_tuner.knobs.knob import Knob
from smart_tuner.knobs.space import SearchSpace
from smart_tuner.storages.ask import ask_trial
from smart_tuner.study.search.sensitivity import ALL_REASON, ALONE_REASON, queue_sensitivity

SPACE = SearchSpace(
    (
        Knob("threads", ("1", "2"), "1", source="threads"),
        Knob("precision.a", ("keep", "fp16", "int8"), "keep", source="precision"),
        Knob("precision.b", ("keep", "int8"), "keep", source="precision"),
    )
)


def asked(study: optuna.Study, count: int) -> list[tuple[str, str]]:
    trials = [ask_trial(study, SPACE.choices) for _ in range(count)]
    return [(trial.user_attrs["route"], trial.user_attrs["reason"]) for trial in trials]


def test_all_regions_and_each_alone_are_tried_behind_the_default() -> None:
    study = optuna.create_study()
    assert queue_sensitivity(study, SPACE, trial_seconds=1.0, budget_seconds=100.0) == 4
    assert asked(study, 5) == [
        ("", "baseline"),
        ("-precision.a=int8 -precision.b=int8", ALL_REASON),
        ("-precision.a=fp16", ALONE_REASON),
        ("-precision.a=int8", ALONE_REASON),
        ("-precision.b=int8", ALONE_REASON),
    ]


def test_where_trials_are_dear_only_whole_routes_are_queued_or_none() -> None:
    study = optuna.create_study()
    assert queue_sensitivity(study, SPACE, trial_seconds=10.0, budget_seconds=120.0) == 1
    assert queue_sensitivity(optuna.create_study(), SPACE, 10.0, budget_seconds=30.0) == 0


def test_a_study_that_began_is_left_alone() -> None:
    study = optuna.create_study()
    queue_sensitivity(study, SPACE, trial_seconds=1.0, budget_seconds=100.0)
    assert queue_sensitivity(study, SPACE, trial_seconds=1.0, budget_seconds=100.0) == 0
    asked(study, 5)
    assert queue_sensitivity(study, SPACE, trial_seconds=1.0, budget_seconds=100.0) == 0


def test_without_regions_nothing_is_queued() -> None:
    space = SearchSpace(SPACE.knobs[:1])
    assert queue_sensitivity(optuna.create_study(), space, 1.0, 100.0) == 0
