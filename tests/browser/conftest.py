"""A real browser, and studies of every kind to look at."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

from smart_tuner.study.files.folder import StudyFolder
from tests.studies_for_viewing import Kind, make_study

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.conftest import MakeOnce

NAMES = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Headless Chromium; where it or Playwright is not installed, tests say so and are left out."""
    api = pytest.importorskip(
        "playwright.sync_api", reason="needs playwright: pip install 'smart-tuner[test]'"
    )
    program = next((found for name in NAMES if (found := shutil.which(name))), None)
    if program is None:
        pytest.skip("needs Chromium: apt-get install chromium")
    with api.sync_playwright() as playwright:
        # Without a sandbox, which root has none of: the pages are our own.
        opened = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def study_of(make_once: MakeOnce) -> Callable[[Kind], StudyFolder]:
    """A study of a kind; nothing in it may be changed."""

    def get(kind: Kind) -> StudyFolder:
        def fill(place: Path) -> None:
            make_study(kind, place)

        folder = make_once(f"viewing-{kind.value}", fill)
        return StudyFolder(folder / f"{kind.value}.study")

    return get
