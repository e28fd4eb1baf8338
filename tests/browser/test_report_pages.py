"""The report in a real browser: every kind of study, wide and narrow, light and dark."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest

from smart_tuner.report.html.page import write_html
from tests.browser.looking import NARROW, WIDE, Looking, look
from tests.studies_for_viewing import Kind, running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from smart_tuner.study.files.folder import StudyFolder

    StudyOf = Callable[[Kind], StudyFolder]

PICTURES = (
    *("confirmation", "history", "tradeoff", "sweep", "effects", "failures", "machine", "phases"),
)
STATES = {Kind.RUNNING: "running", Kind.INTERRUPTED: "stopped"}

UNCONFIRMED = ("confirmation",)
UNMEASURED = ("confirmation", "effects", "machine")
NOTHING_TO_DRAW = {
    Kind.RUNNING: UNCONFIRMED,
    Kind.INTERRUPTED: UNCONFIRMED,
    Kind.ALL_FAILED: UNMEASURED,
    Kind.ONE_TRIAL: (*UNMEASURED, "failures"),
}

DRAWN = """
plot => Boolean(plot.querySelector('.main-svg')) && plot.data.some(trace =>
  [trace.x, trace.y, trace.z].some(values => values && (values.length || values.shape)))
"""
"""Whether a figure is on the screen with data in it."""

MAX_BYTES = 15_000_000


@pytest.fixture
def report(study_of: StudyOf, tmp_path: Path) -> Callable[[Kind], str]:
    """Address of a report, written just now."""

    def write(kind: Kind) -> str:
        folder = study_of(kind)
        held = running(folder) if kind is Kind.RUNNING else contextlib.nullcontext()
        with held:
            path = write_html(folder.root, tmp_path / f"{kind.value}.html")
        assert path.stat().st_size < MAX_BYTES
        return path.as_uri()

    return write


@contextlib.contextmanager
def opened(
    browser: Any, address: str, width: int = WIDE, *, dark: bool = False
) -> Iterator[Looking]:
    seen = look(browser, address, width=width, dark=dark)
    try:
        yield seen
    finally:
        seen.page.context.close()


def scroll_through(seen: Looking) -> None:
    """Bring every figure onto the screen, and wait until each is drawn."""
    for plot in seen.page.locator(".plot").all():
        plot.scroll_into_view_if_needed()
        plot.locator(".main-svg").first.wait_for(state="attached")


@pytest.mark.timeout(180)
@pytest.mark.parametrize("kind", list(Kind), ids=lambda kind: str(kind.value))
def test_every_figure_has_data_or_says_why_not(
    browser: Any, report: Callable[[Kind], str], kind: Kind
) -> None:
    with opened(browser, report(kind)) as seen:
        assert seen.first_paint_ms < 3000
        scroll_through(seen)
        assert seen.complaints == []
        assert seen.overflow == 0
        assert seen.page.locator(".state").inner_text() == STATES.get(kind, "finished")
        for name in PICTURES:
            words = seen.page.locator(f"figure#{name} figcaption, p#{name}").inner_text()
            assert len(words.split()) > 4, name
            plot = seen.page.locator(f"figure#{name} .plot")
            assert plot.count() == (name not in NOTHING_TO_DRAW.get(kind, ())), name
            assert not plot.count() or plot.evaluate(DRAWN), name
            assert not plot.count() or plot.get_attribute("aria-label"), name


@pytest.mark.timeout(180)
def test_a_phone_shows_it_without_scrolling_sideways(
    browser: Any, report: Callable[[Kind], str]
) -> None:
    with opened(browser, report(Kind.FINISHED), NARROW, dark=True) as seen:
        scroll_through(seen)
        assert seen.overflow == 0
        assert seen.complaints == []


def test_colours_follow_the_system_and_violators_are_over_epsilon(
    browser: Any, report: Callable[[Kind], str]
) -> None:
    with opened(browser, report(Kind.FINISHED)) as seen:
        scroll_through(seen)
        ink = "getComputedStyle(document.documentElement).getPropertyValue('--ink').trim()"
        colour = "plot => plot.layout.font.color"
        plot = seen.page.locator("figure#history .plot")
        light = plot.evaluate(colour)
        assert light == seen.page.evaluate(ink)
        seen.page.emulate_media(color_scheme="dark")
        seen.page.wait_for_function(
            f"document.querySelector('figure#history .plot').layout.font.color === {ink}"
        )
        assert plot.evaluate(colour) != light
        names = "plot => plot.data.filter(t => t.mode === 'markers').map(t => [t.name, t.x])"
        traces = dict(seen.page.locator("figure#tradeoff .plot").evaluate(names))
        over = next(values for name, values in traces.items() if name.startswith("over epsilon"))
        assert min(over) > 1 >= max(traces["within epsilon and limits"])


def test_nothing_is_cut_and_no_toolbar_hides_a_figure(
    browser: Any, report: Callable[[Kind], str]
) -> None:
    fits = "(all) => all.every(one => one.scrollWidth <= one.clientWidth)"
    for width in (WIDE, NARROW):
        with opened(browser, report(Kind.FINISHED), width) as seen:
            scroll_through(seen)
            seen.page.evaluate(
                "document.querySelectorAll('details').forEach(d => { d.open = true })"
            )
            seen.page.locator("figure#history .plot").hover()
            assert seen.page.locator(".modebar").count() == 0
            assert seen.page.locator("pre").evaluate_all(fits)
            assert width == WIDE or seen.page.locator(".scroll").evaluate_all(fits)
