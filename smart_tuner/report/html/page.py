"""The whole page, on its own: style, script and plotly's library inside, no network."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

import plotly.offline

from smart_tuner import __version__
from smart_tuner.model.files import whole_file
from smart_tuner.report.analysis.summary import summarize
from smart_tuner.report.html.parts import text
from smart_tuner.report.html.sections import (
    accuracy,
    again,
    certainty,
    failing,
    knobs,
    machine,
    prior,
    search,
)
from smart_tuner.report.html.verdict import deploying, going_on, header
from smart_tuner.report.reading import read_study
from smart_tuner.study.files.folder import StudyFolder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from smart_tuner.report.analysis.summary import StudySummary
    from smart_tuner.report.reading import StudyView

LINKS = {
    "deploy": "What ships",
    "sure": "How sure",
    "history": "The search",
    "accuracy": "Accuracy",
    "effects": "Knobs",
    "failures": "Failures",
    "outlook": "More budget?",
    "prior": "Prior",
    "machine": "Machine",
    "again": "Do it again",
}


def html_report(view: StudyView, summary: StudySummary | None = None) -> str:
    """A study's report as one HTML document.

    Args:
        view: The study.
        summary: What it tells, if that was computed already.
    """
    return "\n".join(_document(view, summary or summarize(view)))


def write_html(root: Path, path: Path | None = None) -> Path:
    """Read a study and write its report.

    Args:
        root: The study folder.
        path: The file; ``report.html`` in the study folder if left out.

    Returns:
        The file.

    Raises:
        UserInputError: There is no study, or its settings are damaged.
        EnvironmentNotFit: The file cannot be written.
    """
    target = path or StudyFolder(root).page_file
    document = html_report(read_study(root))
    with whole_file(target) as file:
        file.write(document.encode())
    return target


def _document(view: StudyView, summary: StudySummary) -> Iterator[str]:
    name = str(view.settings.get("model", "")).rsplit("/", 1)[-1]
    yield '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield '<link rel="icon" href="data:,">'
    yield f"<title>{text(name)}: smart-tuner report</title>"
    yield f"<style>{_asset('report.css')}</style>\n</head>\n<body>"
    yield from header(view, summary)
    links = "".join(f'<a href="#{name}">{text(words)}</a>' for name, words in LINKS.items())
    yield f"<nav>{links}</nav>\n<main>"
    yield from deploying(view, summary)
    yield from certainty(summary)
    yield from search(summary)
    yield from accuracy(summary)
    yield from knobs(summary)
    yield from failing(summary)
    yield from going_on(summary)
    yield from prior(summary)
    yield from machine(summary)
    yield from again(summary)
    yield f"</main>\n<footer>smart-tuner {__version__}; study {text(view.root.name)}</footer>"
    # At the end: five megabytes of library must not stand before the first word.
    yield f"<script>{plotly.offline.get_plotlyjs()}</script>"
    yield f"<script>{_asset('report.js')}</script>\n</body>\n</html>\n"


def _asset(name: str) -> str:
    return (files("smart_tuner.report.html") / "assets" / name).read_text(encoding="utf-8")
