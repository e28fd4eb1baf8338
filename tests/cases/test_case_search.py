"""O36 to O41, as far as a study without priors and dashboard is concerned."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from smart_tuner.measure.latency import Comparison
from smart_tuner.measure.statistics import summarize
from smart_tuner.samplers.registry import make_sampler
from smart_tuner.storages.ask import ask_trial, route_of
from smart_tuner.storages.history import finished_trials
from smart_tuner.storages.journal import open_study
from smart_tuner.storages.tell import tell_trial
from smart_tuner.trial.trial import Trial, TrialOutcome

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import ModuleType

    from smart_tuner.route.build_route import BuildRoute
    from tests.cases.conftest import Product, Study

KNOBS, VALUES, TRIALS = 250, 3, 150
ACCURACY = "constraints:accuracy"


@pytest.mark.parametrize("sampler", ["default", "tpe"])
def test_o36_a_known_route_is_not_tried_again_and_an_exhausted_space_ends_the_study(
    trouble: Study, product: Product, tmp_path: Path, sampler: str
) -> None:
    study = tmp_path / "study"
    words = (*trouble.call, "--study", study, "--only", "level", "--only", "switch")
    words += ("--sampler", sampler, "--trials", "64")
    run = product.run(*words, CASE_LEVELS="0 1")
    assert run.code == 0
    assert "All 4 routes of this space are known; nothing is left to try." in run.notes
    routes = {"", "-level=1", "-switch=on", "-level=1 -switch=on"}
    assert set(product.trials(study)) == routes
    assert len((study / "trials.jsonl").read_text(encoding="utf-8").splitlines()) == 4


def measured_at_once(route: BuildRoute) -> Trial:
    """A trial that took no time: every value away from the default costs a thousandth."""
    summary = summarize([1.0])
    log_ratio = len(route) / 1000
    comparison = Comparison("p", (log_ratio,), log_ratio, 0.001, summary, summary, 0.0)
    return Trial(route, TrialOutcome.FEASIBLE, comparisons=(comparison,))


def test_o37_250_knobs_are_asked_told_and_read_back(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    values = tuple(str(value) for value in range(VALUES))
    choices = {f"knob{number}": values for number in range(KNOBS)}
    defaults = dict.fromkeys(choices, values[0])
    sampler = make_sampler("default", choices, defaults, seed=1)
    study = open_study(tmp_path / "journal.log", "wide", sampler, create=True)
    started = time.perf_counter()
    for number in range(TRIALS):
        trial = ask_trial(study, choices)
        route = route_of(trial.params, choices)
        if number == 0:
            assert not len(route)
        tell_trial(study, trial, measured_at_once(route), 1.0, {"p": 1.0})
    spent = time.perf_counter() - started
    again = open_study(tmp_path / "journal.log", "wide", None, create=False)
    records = finished_trials(again)
    record_property("overhead_ms_per_trial", round(1000 * spent / TRIALS, 1))
    record_property("journal_kb_per_trial", (tmp_path / "journal.log").stat().st_size // 150_000)
    assert len({str(record.route) for record in records}) == len(records) == TRIALS
    assert all(len(record.route) < KNOBS // 2 for record in records)


def test_o37_frozen_knobs_are_left_alone(trouble: Study, product: Product, tmp_path: Path) -> None:
    frozen = [f"--freeze={name}" for name in ("death", "latency", "output", "te*", "level")]
    run = product.run(*trouble.call, "--study", tmp_path / "study", *frozen)
    assert run.code == 0
    assert "1 of 6 knobs are searched; left out: 5 knobs" in run.notes
    assert set(product.trials(tmp_path / "study")) == {"", "-switch=on"}


@pytest.mark.parametrize("levels", ["True True", "1 \uff11"])
def test_o39_values_that_look_alike_are_refused_at_discovery(
    trouble: Study, product: Product, tmp_path: Path, levels: str
) -> None:
    run = product.run(*trouble.call, "--study", tmp_path / "study", CASE_LEVELS=levels)
    assert run.code == 2
    assert "knob level: value" in run.complaint
    assert "is listed twice, or looks like another one" in run.complaint
    assert not (tmp_path / "study").exists()


def test_o39_values_stay_the_text_that_they_are(trouble: Study, case_backend: ModuleType) -> None:
    expected = {f"-text={text}" for text in case_backend.TEXTS}
    assert expected <= set(trouble.trials)
    assert {trouble.trials[route]["outcome"] for route in expected} == {"feasible"}


def journal_constraints(study: Path) -> dict[int, dict[str, float]]:
    """Constraints by trial id, as the journal holds them."""
    found: dict[int, dict[str, float]] = {}
    for line in (study / "journal.log").read_text(encoding="utf-8").splitlines():
        record: dict[str, Any] = json.loads(line, parse_constant=pytest.fail)
        for key, value in record.get("system_attr", {}).items():
            if key.startswith("constraints:"):
                found.setdefault(record["trial_id"], {})[key] = value
    return found


def test_o40_failed_trials_need_no_constraint_and_a_nan_loss_is_a_finite_violation(
    trouble: Study,
) -> None:
    constraints = journal_constraints(trouble.folder)
    failed = [trial for trial in trouble.trials.values() if trial["outcome"].endswith("failed")]
    assert len(failed) == 10
    assert all(ACCURACY not in constraints[trial["number"]] for trial in failed)
    broken = trouble.trials["-output=nan"]
    assert (broken["outcome"], broken["violation"]) == ("infeasible", 6)
    assert constraints[broken["number"]][ACCURACY] == 6
    assert 0 < trouble.trials["-output=off"]["violation"] < 6
    assert not trouble.run.err


def test_o41_foreign_text_is_no_markup_in_the_report(
    trouble: Study, case_backend: ModuleType
) -> None:
    report = (trouble.folder / "report.md").read_text(encoding="utf-8")
    [row] = [line for line in report.splitlines() if case_backend.MARKUP in line]
    # Whatever stands between back ticks is text for every reader of Markdown.
    outside = row.split("`")[::2]
    assert not any("<" in part for part in outside)
