"""``smart-tuner worker``: join a study."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path  # noqa: TC003, typer reads the annotations
from typing import Annotated

import optuna
import typer
from rich.console import Console

from smart_tuner.cli.errors import INTERRUPTED, guarded
from smart_tuner.cli.invocation import current
from smart_tuner.errors import UserInputError
from smart_tuner.knobs.text import many
from smart_tuner.report.terminal import display
from smart_tuner.storages.address import check_url
from smart_tuner.study.files.folder import StudyFolder
from smart_tuner.study.worker import work

HELP = (
    "Join a study that `tune` has begun, from this or another machine, and try routes until its "
    "search is over. `tune` shows what all workers find, and concludes."
)
EXAMPLE = "smart-tuner worker model.study"
NEEDS_ARGUMENTS = True


@guarded
def command(
    study: Annotated[Path, typer.Argument(metavar="STUDY", help="The study folder.")],
    *,
    storage: Annotated[
        str | None,
        typer.Option(
            "--storage",
            metavar="URL",
            help="The study's database, if this machine knows it by another address.",
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print the last line only.")] = False,
) -> int:
    """Work, and say in one line what came of it."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    folder = StudyFolder(study.expanduser().absolute())
    console = Console()
    try:
        with display(f"smart-tuner worker: {folder.root}", console, quiet=quiet) as listener:
            shift = work(folder, listener, _checked(storage))
    except KeyboardInterrupt:
        again = shlex.join(current().words)
        print(f"smart-tuner: stopped, others go on; to join again: {again}", file=sys.stderr)
        return INTERRUPTED
    print(f"{shift.worker}: {many(shift.trials, 'trial')}; {shift.why}")
    return 0


def _checked(storage: str | None) -> str | None:
    try:
        return storage and check_url(storage)
    except ValueError as error:
        msg = f"--storage: {error}"
        raise UserInputError(msg) from None
