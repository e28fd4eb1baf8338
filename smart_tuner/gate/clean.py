"""Dropping what a store does not need any more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from smart_tuner.errors import UserInputError
from smart_tuner.gate.archive import sources_digest
from smart_tuner.gate.facts import DEVICE, SAME_WORK
from smart_tuner.gate.store import ENTRIES, PARTIAL, SOURCES, remove, utc_now

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from smart_tuner.gate.store import Kept, Store

DAY_SECONDS = 86_400
"""What is half written is left alone for so long: its writer may be at work elsewhere."""


@dataclass(frozen=True, slots=True)
class CleanOptions:
    """What may go.

    Attributes:
        keep: Entries that stay of each model, device and workload, the newest first.
        damaged: Drop entries whose files were changed.
        dry_run: Only say what would go.
    """

    keep: int = 5
    damaged: bool = False
    dry_run: bool = False


def clean(store: Store, options: CleanOptions) -> tuple[str, ...]:
    """Drop old entries, sources that no entry needs, and what killed jobs left half written.

    The accepted entry that later runs are compared with always stays.

    Raises:
        UserInputError: An entry is damaged and was not asked to be dropped.
        EnvironmentNotFit: The store cannot be written to.
    """
    with store.changing():
        kept, bad = _readable(store)
        if bad and not options.damaged:
            name, why = next(iter(bad.items()))
            msg = f"Entry {name}: {why} Add --damaged to drop it."
            raise UserInputError(msg)
        old = {each.entry.id for group in _groups(kept) for each in _old(group, options.keep)}
        doomed = [store.entries / name for name in (*bad, *sorted(old))]
        needed = {sources_digest(each.entry.sources) for each in kept if each.entry.id not in old}
        doomed += [
            path
            for path in sorted((store.root / SOURCES).glob("*"))
            if path.is_dir() and not path.name.startswith(".") and path.name not in needed
        ]
        doomed += _half_written(store)
        if not options.dry_run:
            for path in doomed:
                remove(path)
    return tuple(str(path.relative_to(store.root)) for path in doomed)


def _readable(store: Store) -> tuple[list[Kept], dict[str, str]]:
    """Entries that are whole, and what is wrong with the others."""
    kept: list[Kept] = []
    bad: dict[str, str] = {}
    for name in store.ids():
        each = _whole(store, name)
        if isinstance(each, str):
            bad[name] = each
        else:
            kept.append(each)
    return kept, bad


def _whole(store: Store, name: str) -> Kept | str:
    """An entry, or what is wrong with it."""
    try:
        kept = store.read(name)
        kept.check_files()
    except UserInputError as error:
        return str(error)
    return kept


def _groups(kept: list[Kept]) -> Iterator[list[Kept]]:
    """Entries that follow each other: one model, device and workload."""
    groups: dict[tuple[str | None, ...], list[Kept]] = {}
    for each in sorted(kept, key=lambda each: each.entry.created):
        facts = [each.entry.facts.get(name) for name in (DEVICE, *SAME_WORK)]
        groups.setdefault((each.entry.name, *facts), []).append(each)
    yield from groups.values()


def _old(group: list[Kept], keep: int) -> list[Kept]:
    baseline = max((each for each in group if each.accepted), key=_accepted, default=None)
    return [each for each in group[:-keep] if each is not baseline]


def _accepted(kept: Kept) -> str:
    return kept.accepted


def _half_written(store: Store) -> list[Path]:
    now = utc_now().timestamp()
    return [
        path
        for folder in (ENTRIES, SOURCES)
        for path in sorted((store.root / folder).glob(f".*{PARTIAL}"))
        if now - path.stat().st_mtime > DAY_SECONDS
    ]
