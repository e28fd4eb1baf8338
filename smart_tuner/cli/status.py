"""``smart-tuner status``: how far a study is, from any shell."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path  # noqa: TC003, typer reads the annotations
from typing import Annotated

import typer
from rich.console import Console

from smart_tuner.cli.errors import guarded
from smart_tuner.cli.output import print_json
from smart_tuner.report.status import print_status, study_status
from smart_tuner.study.files.folder import StudyFolder

HELP = "Say how far a study is; it may be running in another shell."
EXAMPLE = "smart-tuner status model.study"
NEEDS_ARGUMENTS = True


@guarded
def command(
    study: Annotated[Path, typer.Argument(metavar="STUDY", help="The study folder.")],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> int:
    """Read the journal and print counts, budget and the best route so far."""
    status = study_status(StudyFolder(study.expanduser().absolute()))
    if as_json:
        print_json(asdict(status))
    else:
        print_status(status, Console())
    return 0
