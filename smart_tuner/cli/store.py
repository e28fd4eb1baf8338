"""``smart-tuner store``: what pipelines keep."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003, typer reads the annotations
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from smart_tuner.cli.errors import guarded
from smart_tuner.cli.output import print_json
from smart_tuner.errors import UserInputError
from smart_tuner.gate.clean import CleanOptions, clean
from smart_tuner.gate.listing import entry_facts, entry_rows, print_entry, print_rows
from smart_tuner.gate.store import open_store

if TYPE_CHECKING:
    from smart_tuner.gate.store import Store

HELP = "List, show and clean up a store: ls STORE, show STORE ENTRY, gc STORE."
EXAMPLE = "smart-tuner store ls store"
NEEDS_ARGUMENTS = True

ACTIONS = ("ls", "show", "gc")


@guarded
def command(  # noqa: PLR0913, one parameter an option
    action: Annotated[str, typer.Argument(metavar="ACTION", help="ls, show or gc.")],
    folder: Annotated[Path, typer.Argument(metavar="STORE", help="Folder of the store.")],
    entry: Annotated[
        str, typer.Argument(metavar="[ENTRY]", help="Which entry show prints.", show_default=False)
    ] = "",
    *,
    keep: Annotated[
        int,
        typer.Option(
            "--keep",
            metavar="N",
            min=1,
            help="gc keeps so many entries of a model, device and workload, the newest first; "
            "what runs are compared with always stays.",
        ),
    ] = 5,
    damaged: Annotated[
        bool, typer.Option("--damaged", help="gc drops entries whose files were changed, too.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="gc only says what it would drop.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> int:
    """Do one of the three; 1 if ls or show finds an entry damaged."""
    if action not in ACTIONS:
        msg = f"No action {action!r}: ACTION is {', '.join(ACTIONS)}."
        raise UserInputError(msg)
    if (action == "show") != bool(entry):
        msg = "`smart-tuner store show STORE ENTRY` needs an entry; ls and gc take none."
        raise UserInputError(msg)
    store = open_store(folder, init=False)
    if action == "show":
        return _show(store, entry, as_json=as_json)
    if action == "gc":
        options = CleanOptions(keep=keep, damaged=damaged, dry_run=dry_run)
        return _clean(store, options, as_json=as_json)
    rows = entry_rows(store)
    if as_json:
        print_json(rows)
    else:
        print_rows(rows, Console())
    return 1 if any(row["problem"] for row in rows) else 0


def _show(store: Store, entry: str, *, as_json: bool) -> int:
    kept = store.read(entry)
    kept.check_files()
    if as_json:
        print_json(entry_facts(kept))
    else:
        print_entry(kept, Console())
    return 0


def _clean(store: Store, options: CleanOptions, *, as_json: bool) -> int:
    dropped = clean(store, options)
    if as_json:
        data: dict[str, Any] = {"dropped": list(dropped), "dry_run": options.dry_run}
        print_json(data)
        return 0
    for line in dropped:
        print(f"{'would drop' if options.dry_run else 'dropped'} {line}")
    if not dropped:
        print("Nothing to drop.")
    return 0
