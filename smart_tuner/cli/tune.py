"""``smart-tuner tune``: the search."""

from __future__ import annotations

import json
import sys
from pathlib import Path  # noqa: TC003, typer reads the annotations
from typing import Annotated, Any

import optuna
import typer
from rich.console import Console

from smart_tuner.cli.errors import complain, guarded
from smart_tuner.cli.options import merged, with_settings
from smart_tuner.report.outcome import print_result
from smart_tuner.report.page import write_report
from smart_tuner.report.terminal import display
from smart_tuner.study.settings import StudySettings
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
        Path | None, typer.Option("--config", help="TOML file with settings; flags override it.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print the verdict only.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the verdict as JSON.")] = False,
) -> int:
    """Run a study and print its verdict."""
    return run_study(merged(config, settings), quiet=quiet, as_json=as_json)


def run_study(settings: StudySettings, *, quiet: bool = False, as_json: bool = False) -> int:
    """Tune, write the report, print the verdict."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    console = Console(stderr=as_json)
    title = f"smart-tuner: {settings.model} on {settings.backend}, budget {settings.budget:g} s"
    try:
        with display(title, console, quiet=quiet) as listener:
            result = tune(settings, listener=listener)
    except KeyboardInterrupt:
        complain(f"stopped; the same command continues the study in {settings.folder}")
        return 130
    write_report(settings.folder)
    if as_json:
        json.dump(result.to_json(), sys.stdout, ensure_ascii=False, indent=1)
        print()
    else:
        print_result(result, Console())
    return 0
