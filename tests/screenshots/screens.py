"""Makes the pictures of the README: ``python -m tests.screenshots.screens studies/pictures``.

The terminal's pictures are drawn by rich, the pages' by Chromium; all show the same simulated
study, written by the product's own storage.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from smart_tuner.report.html.page import write_html
from smart_tuner.report.live import LiveDisplay
from smart_tuner.report.pace import Pace
from smart_tuner.report.status import print_status, study_status
from smart_tuner.storages.history import finished_trials
from smart_tuner.storages.journal import open_study
from smart_tuner.study.files.names import BASELINE_MS, STUDY_NAME
from smart_tuner.study.progress.events import PhaseStarted, TrialFinished, TrialStarted
from smart_tuner.study.search.purpose import purpose_of
from smart_tuner.trial.trial import TrialOutcome
from tests.screenshots.serving import served
from tests.studies_for_viewing import Kind, make_study

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

    from smart_tuner.study.files.folder import StudyFolder

NAMES = ("tune.svg", "status.svg", "report.png", "dashboard.png", "dashboard-trials.png")
COLUMNS = 100
TRIED = 41
"""The trial that is being tried in the picture of the terminal."""

SEARCH_SECONDS = 420.0
WIDTH, HEIGHT, HIGH, TALL = 1200, 800, 1000, 1500
FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
TITLE = "smart-tuner: network.onnx on replay, budget 10 min"
LOAD_MS = 90_000
REST_MS = 2_000
"""Plots are drawn after their data has come."""


def live_screen(folder: StudyFolder) -> Console:
    """The live display in the middle of a search, on a console that recorded it."""
    study = open_study(folder.journal, STUDY_NAME, None, create=False)
    records, baseline_ms = finished_trials(study), study.user_attrs[BASELINE_MS]
    console = Console(record=True, width=COLUMNS, force_terminal=True, file=io.StringIO())
    live = LiveDisplay(TITLE, console, Pace(600.0))
    live(PhaseStarted("search", "Searching 12 knobs with 'default'", 4.0))
    spent = 4.0
    for place, record in enumerate(records[: TRIED + 1]):
        why = str(purpose_of(record.route, record.reason, records[:place]))
        live(TrialStarted(record.number, record.route, record.reason, why))
        if place == TRIED:
            break
        spent += record.seconds.get("total", 0.0) / 2
        live(
            TrialFinished(
                number=record.number,
                route=record.route,
                outcome=record.outcome,
                gain=baseline_ms / record.value_ms if record.value_ms else None,
                half_width=record.half_width,
                unchanged=record.unchanged,
                message=record.message,
                incumbent_gain=1.0,
                spent_seconds=spent,
                budget_seconds=600.0,
                search_left_seconds=SEARCH_SECONDS - spent,
            )
        )
    console.print(live)
    return console


def status_screen(folder: StudyFolder) -> Console:
    """What ``status`` prints, on a console that recorded it."""
    console = Console(record=True, width=COLUMNS, force_terminal=True, file=io.StringIO())
    print_status(study_status(folder), console)
    return console


def violator(folder: StudyFolder) -> int:
    """The first trial that was measured and is infeasible."""
    study = open_study(folder.journal, STUDY_NAME, None, create=False)
    return next(
        record.number
        for record in finished_trials(study)
        if record.outcome is TrialOutcome.INFEASIBLE and record.value_ms
    )


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """Headless Chromium, as the browser tests use it."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox"]
        )
        yield browser
        browser.close()


def svg(console: Console, title: str) -> str:
    """What a console recorded, as a drawing that asks no network for its letters."""
    return FONTS.sub("", console.export_svg(title=title))


def page_picture(
    browser: Any, address: str, path: Path, *, wait: str, height: int = HEIGHT
) -> None:
    """Take a picture of a page once a text is on it and nothing more comes."""
    page = browser.new_page(viewport={"width": WIDTH, "height": height})
    page.goto(address)
    page.wait_for_selector(f"text={wait}", timeout=LOAD_MS)
    page.wait_for_load_state("networkidle", timeout=LOAD_MS)
    page.wait_for_timeout(REST_MS)
    page.screenshot(path=path)
    page.close()


def make_pictures(place: Path, browser: Any) -> tuple[Path, ...]:
    """Make every picture of the README.

    Args:
        place: The folder that they go to.
        browser: A browser.

    Returns:
        The files.
    """
    place.mkdir(parents=True, exist_ok=True)
    tune, status, report, dashboard, trials = (place / name for name in NAMES)
    with tempfile.TemporaryDirectory() as made:
        folder = make_study(Kind.FINISHED, Path(made))
        tune.write_text(svg(live_screen(folder), "smart-tuner tune"), encoding="utf-8")
        status.write_text(svg(status_screen(folder), "smart-tuner status"), encoding="utf-8")
        page = write_html(folder.root, Path(made) / "report.html")
        # Where it was made for the moment is nothing to look at.
        page.write_text(page.read_text("utf-8").replace(f"{made}/", ""), "utf-8")
        page_picture(browser, page.as_uri(), report, wait="How sure", height=HIGH)
        with served(folder.root) as address:
            study = f"{address}/dashboard/studies/0"
            page_picture(browser, study, dashboard, wait="Gain of each trial", height=TALL)
            over = f"{study}/trials?numbers={violator(folder)}"
            page_picture(browser, over, trials, wait="Route:")
    return tune, status, report, dashboard, trials


if __name__ == "__main__":
    with chromium() as opened:
        for path in make_pictures(Path(sys.argv[1]), opened):
            print(path, path.stat().st_size)  # noqa: T201
