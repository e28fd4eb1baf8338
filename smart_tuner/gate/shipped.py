"""Is a folder what was shipped? Every file against its digest, and nothing beside them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from smart_tuner.errors import UserInputError
from smart_tuner.gate.documents import Entry, read_document
from smart_tuner.gate.store import ENTRY_FILE, RUNS
from smart_tuner.model.files import file_digest
from smart_tuner.report.export.sums import SUMS, read_sums
from smart_tuner.study.proof.manifest import MANIFEST, MAX_BYTES, parse_manifest

if TYPE_CHECKING:
    from pathlib import Path

WINNER = "winner"


@dataclass(frozen=True, slots=True)
class Shipped:
    """What a check of a folder found.

    Attributes:
        folder: What was checked.
        manifest: Name of the list that was checked against.
        sha256: Digest of that list itself: who deploys may pin it.
        files: How many files it lists.
        problems: One line each: missing, changed, or not listed.
    """

    folder: Path
    manifest: str
    sha256: str
    files: int
    problems: tuple[str, ...]


def check_shipped(folder: Path, pinned: str = "") -> Shipped:
    """Hold every file of a folder against the digests that were shipped with it.

    Args:
        folder: A winner, an export, an entry of a store, or a study with a winner.
        pinned: Digest that the list itself must have; empty for any.

    Raises:
        UserInputError: There is no list of digests, or it is damaged.
    """
    folder = folder.expanduser().absolute()
    if not _lists(folder) and (folder / WINNER).is_dir():
        folder = folder / WINNER
    lists = _lists(folder)
    if not lists:
        msg = (
            f"{folder} holds no {MANIFEST}, {ENTRY_FILE} or {SUMS}: name a winner, an export or "
            "an entry of a store."
        )
        raise UserInputError(msg)
    digests = _digests(folder, lists[0])
    digest = file_digest(folder / lists[0])
    problems = [f"{lists[0]}: its digest is {digest}, not the pinned one"]
    if not pinned or pinned.lower() == digest:
        problems = []
    for name, wanted in digests.items():
        path = folder / name
        if path.is_symlink() or not path.is_file():
            problems.append(f"{name}: missing")
        elif file_digest(path) != wanted:
            problems.append(f"{name}: changed")
    present = {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_symlink() or path.is_file()
    }
    own = {lists[0]} | {name for name in present if lists[0] == ENTRY_FILE and _is_run(name)}
    problems += [f"{name}: not listed" for name in sorted(present - own - digests.keys())]
    return Shipped(folder, lists[0], digest, len(digests), tuple(problems))


def _lists(folder: Path) -> tuple[str, ...]:
    """The lists of digests in a folder; the one that covers most comes first."""
    return tuple(name for name in (ENTRY_FILE, SUMS, MANIFEST) if (folder / name).is_file())


def _digests(folder: Path, name: str) -> dict[str, str]:
    path = folder / name
    if name == ENTRY_FILE:
        return read_document(path, Entry).files
    try:
        if path.stat().st_size > MAX_BYTES:
            msg = f"{path} is too large to be a list of digests: restore it."
            raise UserInputError(msg)
        if name == MANIFEST:
            return dict(parse_manifest(path.read_bytes(), str(path))["files"])
        return read_sums(path.read_text(encoding="utf-8"), str(path))
    except UnicodeDecodeError:
        msg = f"{path} is damaged (not UTF-8): restore it."
        raise UserInputError(msg) from None


def _is_run(name: str) -> bool:
    return name.startswith(f"{RUNS}/") and name.endswith(".json")
