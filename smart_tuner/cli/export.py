"""``smart-tuner export``: a winner in the form of another tool."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from smart_tuner.cli.errors import guarded
from smart_tuner.cli.output import print_json
from smart_tuner.errors import UserInputError
from smart_tuner.model.new_folder import check_new_folder, new_folder
from smart_tuner.report.export.loader import LIBRARIES, export_loader
from smart_tuner.report.export.page import PAGE, page
from smart_tuner.report.export.sums import SUMS, write_sums
from smart_tuner.report.export.torch_tensorrt import export_torch_tensorrt
from smart_tuner.report.export.triton import export_triton
from smart_tuner.report.export.trtexec import export_trtexec
from smart_tuner.report.export.winner import read_winner

if TYPE_CHECKING:
    from smart_tuner.report.export.page import Export
    from smart_tuner.report.export.winner import Winner

HELP = "Write the winner of a study in the form of another tool: a folder with a README.md."
EXAMPLE = "smart-tuner export trtexec model.study --out for-trtexec"
NEEDS_ARGUMENTS = True
FORMS = {
    "trtexec": "route, expression, tuning cache and the command that rebuilds it",
    "torch-tensorrt": "settings for torch_tensorrt.compile",
    "triton": "a model repository",
    "loader": "the engine with a few lines of Python that run it",
}


@guarded
def command(
    form: Annotated[str, typer.Argument(metavar="FORM", help=", ".join(FORMS) + ".")],
    study: Annotated[Path, typer.Argument(metavar="STUDY", help="The study folder.")],
    *,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FOLDER", help="Where to write. [default: STUDY.FORM]"),
    ] = None,
    library: Annotated[
        str,
        typer.Option("--for", metavar="LIBRARY", help=f"loader: {', '.join(LIBRARIES)}."),
    ] = "",
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite files that are there already.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print what was written as JSON.")
    ] = False,
) -> int:
    """Write the folder and list it; 1 if the study ships nothing."""
    _check(form, library)
    place = (out or Path(f"{study.resolve().stem}.{form}")).expanduser().absolute()
    winner = read_winner(study)
    check_new_folder(place, "--out", replace=force)
    with new_folder(place, "--out", replace=force) as making:
        export = _written(winner, making, form, library)
        (making / PAGE).write_text(page(winner, export), encoding="utf-8")
        write_sums(making)
    if as_json:
        print_json(
            {
                "form": form,
                "folder": str(place),
                "files": [*export.about, PAGE, SUMS],
                "without": export.without,
                "notes": export.notes,
            }
        )
    else:
        _print(export, place)
    return 0


def _written(winner: Winner, place: Path, form: str, library: str) -> Export:
    if form == "trtexec":
        return export_trtexec(winner, place)
    if form == "torch-tensorrt":
        return export_torch_tensorrt(winner, place)
    if form == "triton":
        return export_triton(winner, place)
    return export_loader(winner, place, library)


def _check(form: str, library: str) -> None:
    if form not in FORMS:
        msg = f"No form {form!r}: FORM is {', '.join(FORMS)}."
        raise UserInputError(msg)
    if library and form != "loader":
        msg = f"--for goes with loader, not with {form}: leave it out."
        raise UserInputError(msg)


def _print(export: Export, place: Path) -> None:
    print(f"{place}:")
    more = {PAGE: "what this is, and what it needs", SUMS: "digests, for verify --manifest"}
    for name, text in {**export.about, **more}.items():
        print(f"  {name}: {text}")
    for name, why in export.without.items():
        print(f"  not carried over: {name} ({why})")
    for note in export.notes:
        print(f"  note: {note}")
