"""``smart-tuner routes``: a dry run of an expression."""

from __future__ import annotations

import itertools
from pathlib import Path  # noqa: TC003, typer reads the annotations
from typing import TYPE_CHECKING, Annotated

import typer

from smart_tuner.cli.errors import guarded
from smart_tuner.cli.output import print_json
from smart_tuner.cli.sources import BackendOption, DatabaseOption, database_for
from smart_tuner.errors import UserInputError
from smart_tuner.route.enumerate import count_routes, enumerate_routes
from smart_tuner.route.expression import parse_expression, read_expression_file

if TYPE_CHECKING:
    from smart_tuner.knobs.database import KnobDatabase
    from smart_tuner.route.expression import Expression

HELP = "List the routes that an expression stands for, without trying them."
EXAMPLE = "smart-tuner routes --expression '-threads:intra=[1|2]' --mode full"
NEEDS_ARGUMENTS = True
SHOWN = {False: 100, True: 10_000}
"""How many routes are listed, for people and as JSON."""


@guarded
def command(
    *,
    expression: Annotated[
        str | None,
        typer.Option("--expression", metavar="TEXT", help="As '-knob=[a|b] -other=value'."),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file", metavar="FILE", help="Read the expression from a file; # comments."
        ),
    ] = None,
    mode: Annotated[
        str,
        typer.Option(
            "--mode",
            metavar="MODE",
            help="fast: one knob at a time; full: all products; mixed: full over each knob's best.",
        ),
    ] = "fast",
    backend: BackendOption = "onnxruntime",
    database: DatabaseOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print count and routes as JSON.")
    ] = False,
) -> int:
    """Count the routes and list the first of them."""
    knobs = database_for(backend, None, database)
    parsed = _parsed(expression, file, knobs)
    count = count_routes(parsed, mode)
    first = itertools.islice(enumerate_routes(parsed, knobs, mode), SHOWN[as_json])
    routes = [str(route) for route in first]
    if as_json:
        print_json({"count": count, "mode": mode, "routes": routes})
        return 0
    note = " in the first phase" if mode == "mixed" else ""
    print(f"{count} build routes would be tried{note}:")
    for number, route in enumerate(routes):
        print(f"[{number}] {route or '(default)'}")
    if count > len(routes):
        print(f"... and {count - len(routes)} more")
    return 0


def _parsed(expression: str | None, file: Path | None, knobs: KnobDatabase) -> Expression:
    if (expression is None) == (file is None):
        msg = "Give either --expression TEXT or --file FILE, and not both."
        raise UserInputError(msg)
    if file is not None:
        return read_expression_file(file, knobs)
    return parse_expression(expression or "", knobs)
