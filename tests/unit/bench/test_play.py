from __future__ import annotations

from dataclasses import replace

import pytest

from smart_tuner.bench.play import play
from smart_tuner.bench.run import Run, Task
from smart_tuner.bench.samplers import check_contestants, contestant_names, make_contestant
from smart_tuner.bench.workloads import Workload, choose_workloads
from smart_tuner.errors import UserInputError
from smart_tuner.samplers.registry import sampler_names

SMALL = Workload("steady", 3, 12)


def timeless(run: Run) -> Run:
    return replace(run, ask_seconds=())


def test_a_run_repeats_itself_and_survives_its_line() -> None:
    task = Task("evolution", SMALL, 12)
    run = play(task)
    assert Run.from_line(run.to_line()) == run
    assert timeless(play(task)) == timeless(run)


def test_a_run_begins_with_the_default_and_counts_every_trial() -> None:
    run = play(Task("random-3", SMALL, 15))
    assert (run.shipped[0], run.observed[0], run.costs[0]) == (0, 0, 1)
    assert len(run.shipped) == len(run.costs) == len(run.ask_seconds) == 15
    assert sum(run.outcomes.values()) == 15
    assert list(run.costs) == sorted(run.costs)
    assert run.optimum < 0


def test_a_good_search_on_an_easy_compiler_ships_what_it_found() -> None:
    (workload,) = choose_workloads(["steady"], 1, seed=0, knobs=6, least_gain=1.1)
    run = play(Task("fast", workload, 40))
    assert run.shipped[-1] < 0.5 * run.optimum
    assert run.is_winner
    assert run.is_winner_at_one
    assert run.confirmed < 0.5 * run.optimum


def test_a_sweep_that_is_complete_ends_the_run() -> None:
    run = play(Task("fast", Workload("sparse", 0, 2), 40))
    assert len(run.shipped) < 40
    assert run.repeated == 0


def test_where_nothing_can_be_gained_the_default_ships() -> None:
    winners = [play(Task("random-8", Workload("null", n, 40), 30)).is_winner for n in range(5)]
    assert sum(winners) <= 1


@pytest.mark.parametrize("line", ["", "{}", "[1]", '{"task": 1}'])
def test_what_is_no_run_is_refused(line: str) -> None:
    with pytest.raises(UserInputError, match="Not a run"):
        Run.from_line(line)


def test_samplers_of_the_product_and_rivals_have_names() -> None:
    names = contestant_names()
    assert set(sampler_names()) < set(names)
    assert {"boca", "mixed-as-shipped", "random-8", "smac", "tpe-univariate"} < set(names)
    with pytest.raises(UserInputError, match="No sampler 'nope'"):
        check_contestants(["default", "nope"])
    with pytest.raises(UserInputError, match="at least one"):
        check_contestants([])


def test_a_contestant_may_come_from_anyone(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(
        "smart_tuner.bench.samplers.make_sampler", lambda *words: asked.append(words)
    )
    make_contestant("theirs", {"a": ("on", "off")}, 3)
    assert asked == [("theirs", {"a": ("on", "off")}, {"a": "on"}, 3)]
