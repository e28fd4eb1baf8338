"""Entries of a store, as rows and for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from smart_tuner.errors import UserInputError
from smart_tuner.gate.facts import DEVICE, RUNTIME
from smart_tuner.gate.tuning import route_text

if TYPE_CHECKING:
    from rich.console import Console

    from smart_tuner.gate.store import Kept, Store

_RUNS_SHOWN = 5


def entry_rows(store: Store) -> list[dict[str, Any]]:
    """One row an entry, the oldest first; a damaged one says so."""
    rows = [_row(store, name) for name in store.ids()]
    return sorted(rows, key=lambda row: (str(row["created"]), str(row["entry"])))


def _row(store: Store, name: str) -> dict[str, Any]:
    try:
        kept = store.read(name)
        kept.check_files()
    except UserInputError as error:
        return {"entry": name, "created": "", "problem": str(error)}
    entry = kept.entry
    return {
        "entry": name,
        "created": entry.created[:19],
        "name": entry.name,
        "device": entry.facts.get(DEVICE, ""),
        "runtime": entry.facts.get(RUNTIME, ""),
        "route": route_text(entry),
        "latency_ms": _latency(kept),
        "runs": len(kept.runs),
        "accepted": bool(kept.accepted),
        "problem": "",
    }


def _latency(kept: Kept) -> float | None:
    figures = sorted(figure for run in kept.runs[-1:] for figure in run.candidate_ms)
    return figures[len(figures) // 2] if figures else None


def print_rows(rows: list[dict[str, Any]], console: Console) -> None:
    """Print a table; damaged entries below it, one line each."""
    good = [row for row in rows if not row["problem"]]
    if not rows:
        console.print("No entries yet.")
    if good:
        shown = Table(box=None, pad_edge=False)
        for name in ("entry", "runtime", "ms", "runs", "accepted"):
            shown.add_column(name, overflow="fold")
        for row in good:
            latency = "" if row["latency_ms"] is None else f"{row['latency_ms']:.4g}"
            accepted = "yes" if row["accepted"] else "no"
            texts = (row["entry"], row["runtime"], latency, row["runs"], accepted)
            shown.add_row(*(Text(str(text)) for text in texts))
        console.print(shown)
    for row in rows:
        if row["problem"]:
            console.print(Text(f"{row['entry']}: {row['problem']}"))


def entry_facts(kept: Kept) -> dict[str, Any]:
    """Everything about an entry."""
    return {
        **kept.entry.model_dump(),
        "accepted": kept.accepted,
        "runs": [run.model_dump() for run in kept.runs],
    }


def print_entry(kept: Kept, console: Console) -> None:
    """Print an entry for people."""
    entry = kept.entry
    shown = Table(box=None, pad_edge=False, show_header=False)
    shown.add_column(overflow="fold")
    shown.add_column(overflow="fold")
    rows = {
        "entry": entry.id,
        "created": entry.created[:19],
        "verdict": entry.sentence,
        "route": route_text(entry) or "(default)",
        "accepted": kept.accepted[:19] or "no",
        "files": f"{len(entry.files)} in {kept.folder}, every digest right",
        **entry.facts,
    }
    for name, value in rows.items():
        shown.add_row(Text(name), Text(value))
    console.print(shown)
    for run in kept.runs[-_RUNS_SHOWN:]:
        console.print(Text(f"{run.created[:19]}: {run.sentence}"))
