"""``smart-tuner priors``: what earlier studies taught."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from smart_tuner.cli.errors import complain, guarded
from smart_tuner.cli.output import print_json
from smart_tuner.cli.sources import BackendOption, DatabaseOption, database_for
from smart_tuner.errors import UserInputError
from smart_tuner.model.files import whole_file
from smart_tuner.priors.build import build_prior, merge_priors
from smart_tuner.priors.check import check_prior_against
from smart_tuner.priors.files import SUFFIX, prior_schema, read_prior, write_prior
from smart_tuner.priors.foreign import PREFIX, observe_cache, observe_optuna
from smart_tuner.priors.neighbours import find_evidence
from smart_tuner.priors.sources import is_study, observe_study
from smart_tuner.report.prior_card import card
from smart_tuner.report.prior_rows import check_lines, print_prior, prior_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from smart_tuner.knobs.database import KnobDatabase
    from smart_tuner.priors.document import Prior

HELP = (
    "Keep what studies taught as a file: build it of studies, show it, check it against the "
    "knobs of today, or write its page for people."
)
EXAMPLE = "smart-tuner priors build studies --out cnn.prior.toml"
NEEDS_ARGUMENTS = True

PIPE_WIDTH = 160
ACTIONS = ("build", "show", "check", "page", "schema")


@guarded
def command(  # noqa: PLR0913, one parameter an option
    action: Annotated[
        str, typer.Argument(metavar="ACTION", help="build, show, check, page or schema.")
    ],
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SOURCE",
            help="Prior files; build also takes study folders, folders of several, tuning caches of "
            "trtexec (.jsonl) and optuna:STORAGE#STUDY.",
            show_default=False,
        ),
    ] = None,
    *,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="What build and page write.")
    ] = None,
    notes: Annotated[
        str, typer.Option("--notes", metavar="TEXT", help="What people should know; for build.")
    ] = "",
    model: Annotated[
        str | None,
        typer.Option("--model", metavar="MODEL", help="For check: the network to be tuned."),
    ] = None,
    backend: BackendOption = "onnxruntime",
    database: DatabaseOption = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite what --out names.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> int:
    """Do one of these; 1 if a check finds something that does not fit."""
    given = sources or []
    if action == "schema":
        print_json(prior_schema())
        return 0
    _check_call(action, given, out, force=force)
    if action == "build":
        return _build(given, out, notes, as_json=as_json)
    prior = merge_priors(read_prior(Path(text)) for text in given)
    if action == "page":
        return _page(prior, out)
    if action == "check":
        return _check(prior, database_for(backend, model, database), as_json=as_json)
    if as_json:
        print_json(prior_rows(prior))
    else:
        print_prior(prior, Console(width=None if sys.stdout.isatty() else PIPE_WIDTH))
    return 0


def _check_call(action: str, given: Sequence[str], out: Path | None, *, force: bool) -> None:
    if action not in ACTIONS:
        msg = f"No action {action!r}: ACTION is {', '.join(ACTIONS)}."
        raise UserInputError(msg)
    if not given:
        msg = f"`smart-tuner priors {action}` needs at least one SOURCE."
        raise UserInputError(msg)
    if out is not None and out.exists() and not force:
        msg = f"{out} is there already: take --force to overwrite it, or name another --out."
        raise UserInputError(msg)


def _check(prior: Prior, database: KnobDatabase, *, as_json: bool) -> int:
    found = check_prior_against(prior, database)
    if as_json:
        print_json({"fits": found.fits, "known": found.known, "lines": check_lines(found)})
    else:
        print("\n".join(check_lines(found)))
    return 0 if found.fits else 1


def _build(sources: Sequence[str], out: Path | None, notes: str, *, as_json: bool) -> int:
    if out is None or not out.name.endswith((SUFFIX, ".json")):
        msg = f"Name the file to write: --out NAME{SUFFIX}."
        raise UserInputError(msg)
    prior = merge_priors([part for text in sources for part in _read(text)], notes=notes)
    write_prior(out, prior)
    values = sum(len(knob.values) for knob in prior.knobs.values())
    if as_json:
        print_json({"file": str(out), "studies": len(prior.studies), "values": values})
    else:
        print(
            f"{out}: {values} values of {len(prior.knobs)} knobs, "
            f"from {len(prior.studies)} {'study' if len(prior.studies) == 1 else 'studies'}."
        )
        complain(f"note: `smart-tuner priors page {out}` says what it claims.")
    return 0


def _read(text: str) -> Iterator[Prior]:
    """What one SOURCE holds.

    Raises:
        UserInputError: It cannot be read, or is nothing that evidence can be taken from.
    """
    if text.startswith(PREFIX):
        yield build_prior([observe_optuna(text)])
        return
    path = Path(text)
    if not path.is_dir():
        is_cache = path.suffix in (".jsonl", ".log", ".txt")
        yield build_prior([observe_cache(path)]) if is_cache else read_prior(path)
        return
    places = [path] if is_study(path) else list(find_evidence(path))
    if not places:
        msg = f"{path} holds no study."
        raise UserInputError(msg)
    for place in places:
        yield build_prior([observe_study(place)]) if place.is_dir() else read_prior(place)


def _page(prior: Prior, out: Path | None) -> int:
    text = "\n".join((*card(prior), ""))
    if out is None:
        print(text, end="")
        return 0
    with whole_file(out) as file:
        file.write(text.encode())
    return 0
