"""``smart-tuner knobs``: what can be turned."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003, typer reads the annotations
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from smart_tuner.cli.errors import guarded
from smart_tuner.cli.sources import database_for
from smart_tuner.knobs.database import KnobDatabase
from smart_tuner.knobs.read import write_database
from smart_tuner.knobs.search import search_knobs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from smart_tuner.knobs.knob import Knob

HELP = "List what can be turned, and with a model, what can act on it."
EXAMPLE = "smart-tuner knobs fusion --model model.onnx"
NEEDS_ARGUMENTS = False


@guarded
def command(
    words: Annotated[
        list[str] | None, typer.Argument(help="Show only knobs that hold all of these words.")
    ] = None,
    *,
    model: Annotated[
        str | None, typer.Option("--model", help="Say which knobs are idle on this model.")
    ] = None,
    backend: Annotated[str, typer.Option("--backend", help="Whose knobs.")] = "onnxruntime",
    database: Annotated[
        Path | None, typer.Option("--database", help="Read a saved knob database instead.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the knob database as JSON.")
    ] = False,
) -> int:
    """Print a table, or the database as JSON."""
    source = database_for(backend, model, database)
    found = search_knobs(source, words or [])
    if as_json:
        print(write_database(KnobDatabase(found, source.tuner_version)))
        return 0 if found else 1
    if not found:
        print(f"No knob holds {' '.join(words or [])!r}; tuner {source.tuner_version}.")
        return 1
    _print_table(found)
    idle = sum(bool(knob.idle) for knob in found)
    asked = sum(bool(knob.opt_in) for knob in found)
    about = f"{len(found)} of {len(source)} knobs, tuner {source.tuner_version}"
    about += f"; {idle} idle on this model" if model else ""
    about += f"; {asked} off unless asked for" if asked else ""
    print(about)
    return 0


def _print_table(knobs: Sequence[Knob]) -> None:
    console = Console(soft_wrap=False)
    table = Table(box=None, pad_edge=False)
    table.add_column("knob", no_wrap=True, overflow="fold")
    table.add_column("values, default first", max_width=28)
    table.add_column("what it does")
    for knob in knobs:
        values = " ".join(knob.choices) + (" ..." if knob.is_open else "")
        remark = f" [idle: {knob.idle}]" if knob.idle else ""
        remark += f" [off unless asked for: {knob.opt_in}]" if knob.opt_in else ""
        style = "dim" if knob.idle else ""
        table.add_row(knob.name, values, knob.help + remark, style=style)
    console.print(table, markup=False)
