"""``smart-tuner tune``: the search."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path  # noqa: TC003, typer reads the annotations
from typing import Annotated, Any

import optuna
import typer
from rich.console import Console
from rich.text import Text

from smart_tuner.cli.errors import INTERRUPTED, guarded
from smart_tuner.cli.invocation import current
from smart_tuner.cli.options import merged, with_settings
from smart_tuner.cli.output import print_json
from smart_tuner.knobs.text import many
from smart_tuner.report.html.page import write_html
from smart_tuner.report.outcome import print_result
from smart_tuner.report.page import write_report
from smart_tuner.report.terminal import display
from smart_tuner.report.words import duration
from smart_tuner.study.files.folder import StudyFolder
from smart_tuner.study.setup.settings import StudySettings
from smart_tuner.study.tune import tune

HELP = (
    "Search for the fastest setting of a model within a budget, and prove it. Ctrl-C stops; the "
    "same command continues."
)
EXAMPLE = "smart-tuner tune model.onnx --shapes x:1x3x224x224 --budget 10m"
NEEDS_ARGUMENTS = True


@guarded
@with_settings(StudySettings.model_fields)
def command(
    *,
    settings: dict[str, Any],
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", metavar="FILE", help="TOML file with settings; flags override it."
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print the verdict only.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the verdict as JSON.")] = False,
    no_prior: Annotated[
        bool, typer.Option("--no-prior", help="Begin from nothing, whatever --config says.")
    ] = False,
    no_report: Annotated[
        bool,
        typer.Option(
            "--no-report", help="Do not write report.html; `smart-tuner report` does it later."
        ),
    ] = False,
) -> int:
    """Run a study and print its verdict."""
    chosen = merged(config, {**settings, "prior": ()} if no_prior else settings)
    return run_study(chosen, quiet=quiet, as_json=as_json, with_page=not no_report)


def run_study(
    settings: StudySettings, *, quiet: bool = False, as_json: bool = False, with_page: bool = True
) -> int:
    """Tune, print the verdict, write the report.

    The verdict comes first: a page of a large study takes seconds.
    """
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    console = Console(stderr=as_json)
    title = f"smart-tuner: {settings.model} on {settings.backend}, {_limits(settings)}"
    try:
        with display(title, console, quiet=quiet, budget=settings.budget) as listener:
            result = tune(settings, listener=listener)
    except KeyboardInterrupt:
        return _stopped(settings)
    top = write_report(settings.folder)
    if as_json:
        print_json({"study": str(settings.folder), **result.to_json()})
    else:
        print_result(result, top, Console())
    if with_page:
        page = write_html(settings.folder)
        if not quiet and not as_json:
            Console().print(Text(f"  report: {page}"), soft_wrap=True)
    return 0


def _limits(settings: StudySettings) -> str:
    trials = "" if settings.trials is None else f", {many(settings.trials, 'trial')}"
    return f"budget {duration(settings.budget)}{trials}"


def _stopped(settings: StudySettings) -> int:
    """Say in one line how to go on: the very command that was called."""
    again = shlex.join(current().words)
    is_kept = StudyFolder(settings.folder).exists
    what = "stopped, the study is kept; to continue" if is_kept else "stopped; to start again"
    print(f"smart-tuner: {what}: {again}", file=sys.stderr)
    return INTERRUPTED
