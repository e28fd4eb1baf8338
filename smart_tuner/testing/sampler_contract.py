"""The suite that a sampler of routes should pass, ours or another package's.

::

    class TestMySampler(SamplerContract):
        @pytest.fixture
        def make(self) -> MakeSampler:
            return MySampler
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.samplers import BaseSampler
from optuna.trial import TrialState, create_trial

from smart_tuner.errors import SearchExhausted, SmartTunerError
from smart_tuner.measure.latency import Comparison, LatencySummary
from smart_tuner.route.build_route import BuildRoute
from smart_tuner.storages.ask import ask_trial, route_of
from smart_tuner.storages.journal import open_study
from smart_tuner.storages.tell import tell_trial
from smart_tuner.trial.trial import Trial, TrialOutcome
from smart_tuner.validate.losses import OutputLoss

if TYPE_CHECKING:
    from pathlib import Path

    from optuna.distributions import BaseDistribution

Choices = Mapping[str, tuple[str, ...]]
MakeSampler = Callable[[Choices, Mapping[str, str], int], BaseSampler]

SMALL: Choices = {"a": ("on", "off"), "b": ("0", "1", "2"), "c": ("x", "y")}
WIDE: Choices = {f"knob {i}": ("d", "e", "f")[: 2 + i % 2] for i in range(250)}
MIDDLE: Choices = {**SMALL, **{name: WIDE[name] for name in list(WIDE)[:20]}}
SPACES: Mapping[str, Choices] = {
    "no knob": {},
    "one knob": {"a": ("on", "off")},
    "one value": {"a": ("on",), "b": ("0",)},
    "one value beside others": {"a": ("on",), "b": ("0", "1", "2")},
    "odd values": {"a": ("1", "True", "None", "nan", "", " "), "b": ("'", '"', "\\", "|")},
    "non-ASCII": {"größe": ("größer", "小", "🙂"), "a:b=c": ("ö", "o\u0308")},
    "wide": WIDE,
}
BASELINE_MS = 5.0


def defaults_of(choices: Choices) -> dict[str, str]:
    """The first choice of each knob."""
    return {name: values[0] for name, values in choices.items()}


def try_route(route: BuildRoute) -> Trial:
    """What a made-up compiler answers: always the same for a route, failures included."""
    code = zlib.crc32(str(route).encode())
    log_ratio = 0.0 if not route.settings else (code % 1000 - 600) / 10_000
    summary = LatencySummary(9, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0)
    measured = (Comparison("p", (log_ratio,), log_ratio, 0.01, summary, summary, 1.0),)
    if route.settings and code % 7 == 0:
        return Trial(route, TrialOutcome.BUILD_FAILED)
    loss = 1.0 if route.settings and code % 7 == 1 else 0.0
    losses = (OutputLoss("p", "0", "y", "l0", loss, 0.1),)
    outcome = TrialOutcome.INFEASIBLE if loss else TrialOutcome.FEASIBLE
    return Trial(route, outcome, None, losses, measured, unchanged=code % 7 == 2)


def run_study(study: optuna.Study, choices: Choices, count: int) -> list[BuildRoute]:
    """Ask and tell up to ``count`` trials; fewer if the sampler has nothing more to propose."""
    routes: list[BuildRoute] = []
    for _ in range(count):
        try:
            asked = ask_trial(study, choices)
        except SearchExhausted as error:
            assert str(error)  # noqa: PT017 - the message is for users
            break
        routes.append(route_of(asked.params, choices))
        tell_trial(study, asked, try_route(routes[-1]), BASELINE_MS, {"p": 1.0})
    return routes


def histories() -> Iterator[tuple[str, list[optuna.trial.FrozenTrial]]]:
    """Pasts that a sampler may find in a study over ``SMALL``."""
    space = {name: CategoricalDistribution(values) for name, values in SMALL.items()}
    routes = [{"a": "off", "b": b, "c": c} for b in ("0", "1") for c in ("x", "y")]

    def past(params: dict[str, str], **extra: object) -> optuna.trial.FrozenTrial:
        distributions = {name: space[name] for name in params}
        return create_trial(params=params, distributions=distributions, **extra)  # type: ignore[arg-type]

    pruned = {"state": TrialState.PRUNED, "constraints": {"built": 1.0}}
    yield "all failed", [past(route, **pruned) for route in routes]
    yield "all closed as FAIL", [past(route, state=TrialState.FAIL) for route in routes]
    yield "all equal", [past(route, value=5.0) for route in routes * 2]
    yield "all infeasible", [past(r, value=5.0, constraints={"accuracy": 6.0}) for r in routes]
    yield "other constraints", [past(r, value=5.0, constraints={"memory": 1.0}) for r in routes]
    yield "infinite values", [past(route, value=float("inf")) for route in routes]
    yield "missing parameters", [past({"a": "off"}, value=4.0), past({}, value=3.0)]
    yield "running", [past(route, state=TrialState.RUNNING) for route in routes]
    x: dict[str, BaseDistribution] = {"x": FloatDistribution(0, 1)}
    yield "foreign", [create_trial(params={"x": 0.5}, distributions=x, value=1.0)] * 30
    changed: dict[str, BaseDistribution] = {
        name: CategoricalDistribution((*values, "gone")) for name, values in SMALL.items()
    }
    gone = dict.fromkeys(SMALL, "gone")
    yield "changed choices", [create_trial(params=gone, distributions=changed, value=1.0)] * 30


HISTORIES = dict(histories())


class SamplerContract:
    """Subclass it and provide the fixture ``make``."""

    @pytest.fixture
    def make(self) -> MakeSampler:
        """A sampler's factory: choices, defaults, seed."""
        raise NotImplementedError

    @pytest.mark.parametrize("name", SPACES)
    def test_any_space(self, make: MakeSampler, name: str) -> None:
        """The default first, valid values only, no route twice, a clear end."""
        choices = SPACES[name]
        study = optuna.create_study(sampler=make(choices, defaults_of(choices), 0))
        routes = run_study(study, choices, 30)
        assert routes[0] == BuildRoute()
        assert len(set(routes)) == len(routes)
        for route in routes:
            assert all(value in choices[knob] for knob, value in route.settings)

    @pytest.mark.parametrize("name", HISTORIES)
    def test_any_history(self, make: MakeSampler, name: str) -> None:
        """A valid proposal or one clear error."""
        study = optuna.create_study(sampler=make(SMALL, defaults_of(SMALL), 0))
        study.add_trials(HISTORIES[name])
        try:
            routes = run_study(study, SMALL, 3)
        except SmartTunerError as error:
            assert "\n" not in str(error)  # noqa: PT017
        else:
            assert len(set(routes)) == len(routes) > 0

    @pytest.mark.parametrize("name", ["foreign", "changed choices", "missing parameters"])
    def test_odd_trials_do_not_stop_the_sampler_itself(self, make: MakeSampler, name: str) -> None:
        """Asked directly, among trials of its own, it reads past them."""
        sampler = make(MIDDLE, defaults_of(MIDDLE), 0)
        study = optuna.create_study(sampler=sampler)
        run_study(study, MIDDLE, 22)
        study.add_trials(HISTORIES[name])
        study.ask()
        trial = study.trials[-1]
        space = sampler.infer_relative_search_space(study, trial)
        values = sampler.sample_relative(study, trial, space)
        assert all(value in MIDDLE[knob] for knob, value in values.items())

    def test_an_exhausted_space_ends_with_a_message(self, make: MakeSampler) -> None:
        """Every route at most once, then the end, again and again."""
        study = optuna.create_study(sampler=make(SMALL, defaults_of(SMALL), 0))
        assert len(run_study(study, SMALL, 50)) <= 12
        for _ in range(2):
            with pytest.raises(SearchExhausted):
                ask_trial(study, SMALL)

    def test_parallel_asks_differ(self, make: MakeSampler) -> None:
        """Trials in flight are seen."""
        study = optuna.create_study(sampler=make(WIDE, defaults_of(WIDE), 0))
        run_study(study, WIDE, 25)
        routes = [route_of(ask_trial(study, WIDE).params, WIDE) for _ in range(4)]
        assert len(set(routes)) == 4

    def test_a_restart_before_every_ask_changes_nothing(
        self, make: MakeSampler, tmp_path: Path
    ) -> None:
        """A proposal depends on trials, seed and number alone."""
        sampler = make(MIDDLE, defaults_of(MIDDLE), 7)
        expected = run_study(optuna.create_study(sampler=sampler), MIDDLE, 30)
        routes = []
        for _ in expected:
            fresh = make(MIDDLE, defaults_of(MIDDLE), 7)
            study = open_study(tmp_path / "journal.log", "s", fresh, create=True)
            routes += run_study(study, MIDDLE, 1)
        assert routes == expected

    def test_asking_twice_for_one_trial_gives_one_answer(self, make: MakeSampler) -> None:
        """Nothing is carried from ask to ask, not even by one object."""
        sampler = make(WIDE, defaults_of(WIDE), 2)
        study = optuna.create_study(sampler=sampler)
        run_study(study, WIDE, 24)
        study.ask()
        trial = study.trials[-1]
        space = sampler.infer_relative_search_space(study, trial)
        first, second = (sampler.sample_relative(study, trial, space) for _ in range(2))
        assert first == second
