"""``smart-tuner knobs``: what can be turned."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from smart_tuner.cli.errors import guarded
from smart_tuner.cli.sources import BackendOption, DatabaseOption, database_for
from smart_tuner.engine.backend import load_backend
from smart_tuner.errors import UserInputError
from smart_tuner.knobs.database import KnobDatabase
from smart_tuner.knobs.groups import group_knobs
from smart_tuner.knobs.read import write_database
from smart_tuner.knobs.search import search_knobs
from smart_tuner.knobs.text import many
from smart_tuner.model.load import load_model
from smart_tuner.model.public import locate_model
from smart_tuner.priors.relevance import unlikely
from smart_tuner.study.setup.precision import region_knobs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from smart_tuner.knobs.knob import Knob

HELP = "List what can be turned, and with a model, what can act on it."
EXAMPLE = "smart-tuner knobs fusion --model model.onnx"
NEEDS_ARGUMENTS = False
INDENT = "    "


@guarded
def command(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="WORD", help="Show only knobs that hold all of these words."),
    ] = None,
    *,
    model: Annotated[
        str | None,
        typer.Option("--model", metavar="MODEL", help="Say which knobs are idle on it."),
    ] = None,
    regions: Annotated[
        list[str] | None,
        typer.Option(
            "--regions",
            metavar="WHAT",
            help="List its regions too: a number, auto, per-layer or a pattern. [repeatable]",
        ),
    ] = None,
    backend: BackendOption = "onnxruntime",
    database: DatabaseOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the knob database as JSON.")
    ] = False,
) -> int:
    """Print a list, or the database as JSON."""
    source = database_for(backend, model, database)
    if regions:
        source = _with_regions(source, backend, model, regions)
    found = search_knobs(source, words or [])
    doubts = _doubts(found, model)
    if as_json:
        print(write_database(KnobDatabase(found, source.tuner_version)))
        return 0 if found else 1
    if not found:
        print(f"No knob holds {' '.join(words or [])!r}; tuner {source.tuner_version}.")
        return 1
    _print_knobs(found, Console(), doubts)
    idle = sum(bool(knob.idle) for knob in found)
    asked = sum(bool(knob.opt_in) for knob in found)
    about = f"{len(found)} of {len(source)} knobs, tuner {source.tuner_version}"
    about += f"; {idle} idle on this model" if model else ""
    about += f"; {len(doubts)} more unlikely to act on it" if doubts else ""
    about += f"; {asked} off unless asked for" if asked else ""
    print(about)
    return 0


def _with_regions(
    source: KnobDatabase, backend: str, model: str | None, wanted: Sequence[str]
) -> KnobDatabase:
    """The knobs with those of a model's regions before them."""
    if model is None:
        msg = "--regions are those of a model: name it with --model."
        raise UserInputError(msg)
    spec = load_model(locate_model(Path(model)))
    own = region_knobs(spec, load_backend(backend), wanted)
    return KnobDatabase((*own, *source.knobs), source.tuner_version)


def _doubts(knobs: Sequence[Knob], model: str | None) -> dict[str, str]:
    """Knobs that the backend does not call idle, and that concern no operator of a network."""
    if model is None:
        return {}
    spec = load_model(locate_model(Path(model)))
    return unlikely((knob.name for knob in knobs if not knob.idle), spec.operators)


def _print_knobs(knobs: Sequence[Knob], console: Console, doubts: Mapping[str, str]) -> None:
    """Group by group, two lines a knob; on a terminal the second one is wrapped."""
    width = max(20, console.width - len(INDENT)) if console.is_terminal else sys.maxsize
    for group in group_knobs(knobs):
        count = many(len(group.knobs), "knob")
        console.print(Text(f"# {group.title}: {count}", style="cyan"), soft_wrap=True)
        for knob in group.knobs:
            doubt = doubts.get(knob.name, "")
            style = "dim" if knob.idle or doubt else ""
            values = " | ".join(knob.choices) + (" | ..." if knob.is_open else "")
            head = Text.assemble((knob.name, "bold"), f" = {values}", style=style)
            console.print(head, soft_wrap=True)
            for line in textwrap.wrap(_about(knob, doubt), width, break_on_hyphens=False):
                console.print(Text(f"{INDENT}{line}", style=style), soft_wrap=True)


def _about(knob: Knob, doubt: str) -> str:
    text = knob.help
    text += f" [unlikely to act: {doubt}]" if doubt else ""
    text += f" [idle: {knob.idle}]" if knob.idle else ""
    text += f" [off unless asked for: {knob.opt_in}]" if knob.opt_in else ""
    return text
