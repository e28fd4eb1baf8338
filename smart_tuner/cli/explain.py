"""``smart-tuner explain``: a study in words."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003, typer reads the annotations
from typing import Annotated

import optuna
import typer
from rich.console import Console

from smart_tuner.cli.errors import guarded
from smart_tuner.cli.output import print_json
from smart_tuner.report.analysis.summary import summarize
from smart_tuner.report.explain import explain, explanation_json, print_explanation
from smart_tuner.report.reading import read_study

HELP = (
    "Say in words which knobs pay and which break, what is still unknown, and whether it is "
    "worth going on."
)
EXAMPLE = "smart-tuner explain model.study"
NEEDS_ARGUMENTS = True


@guarded
def command(
    study: Annotated[Path, typer.Argument(metavar="STUDY", help="The study folder.")],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> int:
    """Read the study and explain it."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    root = study.expanduser().absolute()
    summary = summarize(read_study(root))
    if as_json:
        print_json({"study": str(root), **explanation_json(summary)})
    else:
        print_explanation(explain(summary), Console())
    return 0
