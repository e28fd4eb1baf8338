from __future__ import annotations

import importlib.util
from dataclasses import replace
from typing import TYPE_CHECKING

import optuna
import pytest

from smart_tuner.bench.rivals import registry
from smart_tuner.bench.rivals.registry import make_rival, rival_names
from smart_tuner.errors import EnvironmentNotFit, SearchExhausted
from smart_tuner.route.build_route import BuildRoute
from smart_tuner.storages.ask import ask_trial, enqueue, route_of
from smart_tuner.storages.tell import tell_trial
from smart_tuner.testing.sampler_contract import try_route

if TYPE_CHECKING:
    from optuna.samplers import BaseSampler

    from smart_tuner.trial.trial import Trial

CHOICES = {**{f"k{i}": ("d", "e", "f")[: 2 + i % 2] for i in range(12)}, "one": ("d",)}
NEEDS = {"smac": "smac", "boca": "sklearn", "gp": "torch"}


def is_here(name: str) -> bool:
    return name not in NEEDS or importlib.util.find_spec(NEEDS[name]) is not None


def routes(sampler: BaseSampler, count: int) -> list[BuildRoute]:
    """Routes of a study that begins with the default."""
    study = optuna.create_study(sampler=sampler)
    enqueue(study, {}, "baseline", CHOICES)
    found = []
    for _ in range(count):
        asked = ask_trial(study, CHOICES)
        found.append(route_of(asked.params, CHOICES))
        tell_trial(study, asked, try_route(found[-1]), 5.0, {"p": 1.0})
    return found


@pytest.mark.parametrize("name", [name for name in rival_names() if is_here(name)])
def test_a_rival_proposes_valid_routes_and_repeats_itself(name: str) -> None:
    count = 22 if name in ("boca", "gp", "smac", "tpe-centred") else 12
    found = routes(make_rival(name, CHOICES, 4), count)
    assert found[0] == BuildRoute()
    assert len(set(found)) > count // 2
    if name not in NEEDS:  # those take seconds
        assert routes(make_rival(name, CHOICES, 4), count) == found


@pytest.mark.parametrize(("name", "flips"), [("random-3", 3), ("random-8", 8)])
def test_random_routes_have_so_many_flips(name: str, flips: int) -> None:
    assert {len(route) for route in routes(make_rival(name, CHOICES, 1), 8)[1:]} == {flips}


@pytest.mark.parametrize("name", ["tpe-centred", *(n for n in ("boca",) if is_here(n))])
def test_what_is_centred_starts_with_three_flips(name: str) -> None:
    assert {len(route) for route in routes(make_rival(name, CHOICES, 1), 15)[1:]} == {3}


def test_mixed_as_shipped_takes_whole_lists_of_all_that_seemed_faster() -> None:
    choices = {"a": ("d", "e"), "b": ("d", "e", "f"), "c": ("d", "e")}
    study = optuna.create_study(sampler=make_rival("mixed-as-shipped", choices, 0))
    enqueue(study, {}, "baseline", choices)
    found = []
    for _ in range(11):
        asked = ask_trial(study, choices)
        route = route_of(asked.params, choices)
        found.append(str(route))
        log_ratio = -0.001 if found[-1] in {"-a=e", "-b=e"} else 0.2 * bool(route.settings)
        tell_trial(study, asked, measured(route, log_ratio), 5.0, {"p": 1.0})
    assert found[1:5] == ["-a=e", "-b=e", "-b=f", "-c=e"]
    # The product over both lists, the default and known routes in it again.
    assert found[5:] == ["", "-b=e", "-b=f", "-a=e", "-a=e -b=e", "-a=e -b=f"]
    with pytest.raises(SearchExhausted, match="as shipped"):
        ask_trial(study, choices)


def measured(route: BuildRoute, log_ratio: float) -> Trial:
    default = try_route(BuildRoute())
    comparison = replace(default.comparisons[0], log_ratio=log_ratio)
    return replace(default, route=route, comparisons=(comparison,))


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(name="smac")

    monkeypatch.setattr(registry, "import_module", missing)
    with pytest.raises(EnvironmentNotFit, match=r"smac needs the package smac.*\[bench\]"):
        make_rival("smac", CHOICES, 0)
