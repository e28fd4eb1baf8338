"""``smart-tuner verify``: does the winner still win?"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path  # noqa: TC003, typer reads the annotations
from typing import Annotated

import typer
from rich.console import Console

from smart_tuner.cli.errors import guarded
from smart_tuner.cli.output import print_json
from smart_tuner.errors import UserInputError
from smart_tuner.gate.shipped import Shipped, check_shipped
from smart_tuner.report.terminal import display
from smart_tuner.study.proof.finalists import REPORT_ROUNDS
from smart_tuner.study.verify import Verification, verify

HELP = (
    "Measure the engine that ships against fresh builds of the default, here and today; with "
    "--rebuild, build the winner's route anew as well. With --manifest, measure nothing: hold every "
    "file against the digests that it was shipped with."
)
EXAMPLE = "smart-tuner verify model.study"
NEEDS_ARGUMENTS = True


@guarded
def command(
    study: Annotated[Path, typer.Argument(metavar="STUDY", help="The study folder.")],
    *,
    rounds: Annotated[
        int, typer.Option("--rounds", metavar="N", min=2, max=100, help="Fresh builds a side.")
    ] = REPORT_ROUNDS,
    rebuild: Annotated[
        bool,
        typer.Option("--rebuild", help="Ask whether the route, built anew, still gains."),
    ] = False,
    manifest: Annotated[
        bool,
        typer.Option(
            "--manifest",
            help="Only check digests; STUDY may also be a winner, an export or a store's entry.",
        ),
    ] = False,
    sha256: Annotated[
        str, typer.Option("--sha256", metavar="DIGEST", help="Digest that the manifest must have.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> int:
    """Measure again; 1 if there is no gain any more, or a file is not what was shipped."""
    if sha256 and not manifest:
        msg = "--sha256 goes with --manifest: add it."
        raise UserInputError(msg)
    if manifest:
        return _check(check_shipped(study, sha256), as_json=as_json)
    with display(
        f"smart-tuner: verifying {study}", Console(stderr=True), quiet=as_json
    ) as listener:
        found = verify(study, listener, rounds, rebuild=rebuild)
    if as_json:
        print_json({**asdict(found), "holds": found.holds})
    else:
        print(_sentence(found))
    return 0 if found.holds else 1


def _check(found: Shipped, *, as_json: bool) -> int:
    if as_json:
        print_json({**asdict(found), "folder": str(found.folder)})
        return 1 if found.problems else 0
    for problem in found.problems:
        print(problem)
    if found.problems:
        print(f"{found.folder} is not what was shipped: do not load it.")
        return 1
    print(f"{found.folder}: {found.files} files, every digest right, nothing beside them.")
    print(f"SHA-256 of {found.manifest}: {found.sha256}")
    return 0


def _sentence(found: Verification) -> str:
    """Which question was answered, and the answer."""
    what = f"The route {found.route}, built anew" if found.rebuilt else "The engine that ships"
    if found.gain is None:
        return f"{what}, does not work here any more: see the lines above."
    text = f"{what}: now {found.gain}; when the study ended {found.before}."
    text += " The two agree." if found.agrees else " The two differ by more than chance."
    if found.failures:
        text += f" It failed in {found.failures} rounds: do not ship it."
    elif not found.holds:
        text += " No gain is proven here today."
    if not found.rebuilt:
        text += " Whether a rebuild would be as good is another question: --rebuild asks it."
    return text
