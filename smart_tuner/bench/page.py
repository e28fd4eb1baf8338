"""A comparison as a page: tables in Markdown, plots beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smart_tuner.bench.plots import plots_page
from smart_tuner.bench.tables import difference_tables, score_tables
from smart_tuner.model.files import whole_file
from smart_tuner.report.markdown import code, plain, table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from smart_tuner.bench.summary import Summary

TABLES_FILE, PLOTS_FILE = "tables.md", "plots.html"

LEGEND = (
    "`@30`: mean share of the attainable gain, (L_default - L_n) / (L_default - L_optimum) by true "
    "latencies, of the route that a study would ship after 30 trials. `area`: its mean over the "
    "trials. `log`: share of the attainable log speed-up in the end. `shipped`: share that is left "
    "once a winner was confirmed on fresh builds, the default where none was. `90 %`, `trials`: on "
    "how many workloads nine tenths were reached, and after how many trials at the median. `cost "
    "30`: the same once the search had cost as much as 30 builds of the default. `bad`: trials that "
    "failed or broke epsilon. `late ask`: seconds of the last ten asks."
)


def write_page(summary: Summary, folder: Path, title: str, *, whole: bool = True) -> None:
    """Write ``tables.md`` and ``plots.html`` into a folder.

    Args:
        summary: What was found.
        folder: An existing folder.
        title: Of both.
        whole: The plots open without a network, and take 5 MB.
    """
    text = "\n".join(_markdown(summary, title)) + "\n"
    pages = {TABLES_FILE: text, PLOTS_FILE: plots_page(summary, title, whole=whole)}
    for name, content in pages.items():
        with whole_file(folder / name) as file:
            file.write(content.encode())


def _markdown(summary: Summary, title: str) -> Iterator[str]:
    yield f"# {plain(title)}"
    yield ""
    named = {key: value for key, value in summary.plan.items() if value not in (None, [], ())}
    shown = (f"{key} {code(_words(value))}" for key, value in named.items())
    yield f"{'; '.join(shown)}."
    yield ""
    yield LEGEND
    for heading, head, rows in (
        *score_tables(summary.scores),
        *difference_tables(summary.differences),
    ):
        yield ""
        yield f"## {plain(heading)}"
        yield ""
        yield from table(head, ([plain(cell) for cell in row] for row in rows))


def _words(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
