"""``smart-tuner dashboard``: studies in a browser, live."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import optuna
import typer

from smart_tuner.cli.errors import complain, guarded
from smart_tuner.dashboard.server import (
    LOOPBACK,
    USUAL_PORT,
    is_loopback,
    serving,
    step_back,
    url_of,
)

HELP = "Show studies in a browser: one, or all of a folder. They may be running; Ctrl-C ends it."
EXAMPLE = "smart-tuner dashboard model.study"
NEEDS_ARGUMENTS = False


@guarded
def command(
    place: Annotated[
        Path,
        typer.Argument(metavar="STUDY|FOLDER", help="A study folder, or one that holds some."),
    ] = Path(),
    *,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            metavar="N",
            min=0,
            max=65535,
            help=f"Where to listen; 0 for any free port. [default: {USUAL_PORT} if it is free]",
            show_default=False,
        ),
    ] = None,
    host: Annotated[
        str, typer.Option("--host", metavar="NAME", help="Who may look: others too at 0.0.0.0.")
    ] = LOOPBACK,
) -> int:
    """Serve optuna-dashboard over a view of the studies until Ctrl-C."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with serving(place.expanduser().absolute(), host, port) as server:
        step_back()
        if not is_loopback(host):
            complain(f"warning: whoever reaches {host} can read these studies and their logs.")
        try:
            print(f"smart-tuner dashboard: {url_of(server)} (Ctrl-C ends it)", flush=True)
            server.serve_forever()
        except KeyboardInterrupt:
            print("smart-tuner dashboard: ended")
    return 0
