"""The dashboard in a real browser: every kind of study, light and dark, live, and its end."""

from __future__ import annotations

import contextlib
import shutil
import signal
import urllib.request
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from smart_tuner.route.build_route import BuildRoute
from smart_tuner.storages.ask import running_trials
from smart_tuner.storages.journal import open_study
from smart_tuner.storages.tell import tell_trial
from smart_tuner.study.files.names import STUDY_NAME
from smart_tuner.trial.trial import Trial, TrialOutcome
from tests.browser.looking import Looking, look
from tests.screenshots.serving import dashboard_process, served
from tests.studies_for_viewing import WEIGHTS, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Page

    from smart_tuner.study.files.folder import StudyFolder

    StudyOf = Callable[[Kind], StudyFolder]

KINDS = (
    *(Kind.ALL_FAILED, Kind.BIG, Kind.FINISHED, Kind.INTERRUPTED, Kind.NO_GAIN, Kind.ONE_TRIAL),
    Kind.RUNNING,
)
"""In the order of their folders' names: a study's number is its place here."""

LOAD_MS = 90_000
"""The largest one sends thirty megabytes; the dashboard's own code takes its time over them."""

FIGURES = {
    Kind.FINISHED: 5,
    Kind.BIG: 5,
    Kind.NO_GAIN: 5,
    Kind.RUNNING: 4,
    Kind.INTERRUPTED: 4,
    Kind.ALL_FAILED: 2,
    Kind.ONE_TRIAL: 1,
}
"""How many figures of our own there are data for, at least."""

LISTED = """rows => Object.fromEntries(rows.map(row => {
  const chip = row.querySelector('.MuiChip-label');
  const title = row.querySelector('.MuiListItemText-primary');
  return [title.textContent, [chip.textContent, chip.dataset.outcome].filter(Boolean).join(': ')];
}))"""

DRAWN = """least => {
  const ours = [...document.querySelectorAll('.js-plotly-plot')].filter(plot =>
    plot.layout && plot.layout.title && /^(Gain|Paired|Effect|Epsilon|What)/.test(plot.layout.title.text));
  return ours.length >= least &&
    ours.every(plot => plot.querySelector('.main-svg') && plot.data.length > 0);
}"""
"""Whether the figures of ours, told by their titles, are on the screen with data in them."""


@pytest.fixture(scope="module")
def studies(
    study_of: StudyOf, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Path]]:
    """A folder with a study of each kind, served; its address, and the folder."""
    place = tmp_path_factory.mktemp("studies")
    for kind in KINDS:
        folder = study_of(kind)
        shutil.copytree(folder.root, place / folder.root.name)
    with served(place) as address:
        for number in range(len(KINDS)):
            # What is put together once is kept: the browser waits for nothing but itself.
            url = f"{address}/api/studies/{number}?after=0"
            with urllib.request.urlopen(url, timeout=LOAD_MS / 1000) as answer:
                assert answer.status == 200
        yield address, place


@contextlib.contextmanager
def opened(browser: Any, address: str, *, dark: bool = False) -> Iterator[Looking]:
    """A page that has come to rest; nothing in it complained."""
    seen = look(browser, address, dark=dark)
    try:
        seen.page.wait_for_load_state("networkidle", timeout=LOAD_MS)
        yield seen
        assert seen.complaints == []
    finally:
        seen.page.context.close()


def chips(page: Page) -> dict[str, str]:
    """What the list of trials says of each: state, and outcome where it is not feasible."""
    page.wait_for_selector(".MuiListItemButton-root .MuiChip-label", timeout=LOAD_MS)
    rows = page.locator(".MuiListItemButton-root:has(.MuiChip-label)")
    found: dict[str, str] = rows.evaluate_all(LISTED)
    return found


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.value)
def test_every_page_of_every_study(browser: Any, studies: tuple[str, Path], kind: Kind) -> None:
    address, _ = studies
    place = f"{address}/dashboard/studies/{KINDS.index(kind)}"
    with opened(browser, place, dark=kind is Kind.FINISHED) as seen:
        seen.page.wait_for_selector("text=Gain of each trial", timeout=LOAD_MS)
        seen.page.wait_for_function(DRAWN, arg=FIGURES[kind], timeout=LOAD_MS)
        # By its own links: a page that is opened anew asks for all trials again.
        seen.page.click("a[href$='/trials']")
        assert chips(seen.page)["Trial 0"] == "Complete"
        seen.page.wait_for_selector("text=Route: (default)", timeout=LOAD_MS)
        seen.page.click("a[href$='/note']")
        seen.page.wait_for_selector("text=This page only reads", timeout=LOAD_MS)


@pytest.mark.timeout(300)
def test_violators_are_marked_in_the_list(browser: Any, studies: tuple[str, Path]) -> None:
    address, place = studies
    kept = open_study(place / "finished.study" / "journal.log", STUDY_NAME, None, create=False)
    expected = {
        f"Trial {trial.number}": "Complete: infeasible"
        for trial in kept.trials
        if trial.values and any(value > 0 for value in trial.constraints.values())
    }
    number = KINDS.index(Kind.FINISHED)
    with opened(browser, f"{address}/dashboard/studies/{number}/trials") as seen:
        seen.page.wait_for_selector("[data-outcome=infeasible]", timeout=LOAD_MS)
        states = chips(seen.page)
        infeasible = {name: state for name, state in states.items() if "infeasible" in state}
        assert infeasible
        assert infeasible == {name: state for name, state in expected.items() if name in states}


@pytest.mark.timeout(300)
def test_a_running_study_is_live(browser: Any, studies: tuple[str, Path]) -> None:
    address, place = studies
    study = open_study(place / "running.study" / "journal.log", STUDY_NAME, None, create=False)
    (trial,) = running_trials(study)
    page = f"studies/{KINDS.index(Kind.RUNNING)}/trials?numbers={trial.number}"
    with opened(browser, f"{address}/dashboard/{page}") as seen:
        seen.page.wait_for_selector("text=Being tried", timeout=LOAD_MS)
        tried = Trial(BuildRoute(), TrialOutcome.TIMED_OUT, message="the browser watches")
        tell_trial(study, trial, tried, 2.0, WEIGHTS)
        seen.page.wait_for_selector("text=the browser watches", timeout=LOAD_MS)
        seen.page.wait_for_selector("[data-outcome='timed out']", timeout=LOAD_MS)


def test_ctrl_c_ends_it_and_leaves_nothing(study_of: StudyOf) -> None:
    with dashboard_process(study_of(Kind.ONE_TRIAL).root) as (_, process):
        children = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=30)
    assert (process.returncode, out) == (0, "smart-tuner dashboard: ended\n")
    assert children == []
