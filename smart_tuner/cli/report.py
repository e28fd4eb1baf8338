"""``smart-tuner report``: a study as one page to look at, or as data."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003, typer reads the annotations
from typing import Annotated

import optuna
import typer

from smart_tuner.cli.errors import guarded
from smart_tuner.cli.output import print_json
from smart_tuner.errors import UserInputError
from smart_tuner.report.analysis.summary import summarize
from smart_tuner.report.comment import markdown_comment
from smart_tuner.report.html.page import write_html
from smart_tuner.report.reading import read_study
from smart_tuner.trial.fields import to_json

HELP = "Write a study's report: one HTML file that needs no network, in whatever state it is."
EXAMPLE = "smart-tuner report model.study --out report.html"
NEEDS_ARGUMENTS = True


@guarded
def command(
    study: Annotated[Path, typer.Argument(metavar="STUDY", help="The study folder.")],
    *,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="HTML file to write. [default: STUDY/report.html]",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print what the report is made of as JSON instead.")
    ] = False,
    as_markdown: Annotated[
        bool,
        typer.Option("--markdown", help="Print Markdown for a pull-request comment instead."),
    ] = False,
) -> int:
    """Read the study and write its report."""
    if (as_json or as_markdown) and (out is not None or (as_json and as_markdown)):
        msg = "--json and --markdown print: give one of them, without --out, and redirect it."
        raise UserInputError(msg)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    root = study.expanduser().absolute()
    if not (as_json or as_markdown):
        print(write_html(root, out))
        return 0
    view = read_study(root)
    summary = summarize(view)
    if as_json:
        print_json({"study": str(root), **to_json(summary)})
    else:
        print(markdown_comment(view, summary), end="")
    return 0
