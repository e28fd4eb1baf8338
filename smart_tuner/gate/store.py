"""A store: one folder of tuned engines that pipelines share; it may be synced as it is.

``store.json`` names the schema. ``entries/ID/`` appears whole and is never changed, but for
``runs/``, where each run of the gate adds a file of its own. ``sources/DIGEST/`` holds what engines
open again when they are loaded, such as the model, once for all entries. Names are unique, so two
jobs never write the same file, and copies of a store can be merged file by file.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import secrets
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from filelock import FileLock
from pydantic import BaseModel, ConfigDict

from smart_tuner.errors import EnvironmentNotFit, UserInputError
from smart_tuner.gate.documents import MAX_FILES, SCHEMA_VERSION, Entry, Run, read_document
from smart_tuner.gate.facts import DEVICE, SAME_WORK
from smart_tuner.model.files import file_digest, write_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

STORE_FILE, ENTRY_FILE, LOCK = "store.json", "entry.json", ".lock"
ENTRIES, SOURCES, RUNS = "entries", "sources", "runs"
PARTIAL = ".partial"
SHORT = 40
"""Characters of a model's name in those of its entries."""


class _StoreDocument(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    schema_version: int


@dataclass(frozen=True, slots=True)
class Kept:
    """An entry of a store with the runs of the gate on it.

    Attributes:
        entry: What it says.
        folder: Where it lies.
        runs: In the order in which they came.
    """

    entry: Entry
    folder: Path
    runs: tuple[Run, ...]

    @property
    def accepted(self) -> str:
        """When it last was made what later runs are compared with; empty if never."""
        return max((run.created for run in self.runs if run.accepted), default="")

    def check_files(self) -> None:
        """Hold every file against its digest.

        Raises:
            UserInputError: One is missing or was changed.
        """
        for name, digest in self.entry.files.items():
            path = self.folder / name
            if not path.is_file() or path.is_symlink() or file_digest(path) != digest:
                raise UserInputError(damaged(self.folder, name))


def damaged(folder: Path, name: str) -> str:
    """The line about a file that is not what it was."""
    return (
        f"{folder / name} is missing or was changed since it was stored, so nothing of it is "
        f"loaded: restore {folder}, or drop it with `smart-tuner store gc {folder.parents[1]} "
        "--damaged`."
    )


@dataclass(frozen=True, slots=True)
class Store:
    """A folder of entries.

    Attributes:
        root: Absolute path.
    """

    root: Path

    @property
    def entries(self) -> Path:
        """Folder of the entries."""
        return self.root / ENTRIES

    def source(self, digest: str) -> Path:
        """Folder of the files that engines open again."""
        return self.root / SOURCES / digest

    def ids(self) -> tuple[str, ...]:
        """Names of the entries, whether they can be read or not.

        Raises:
            UserInputError: There are too many to be a store.
        """
        if not self.entries.is_dir():
            return ()
        names = [path.name for path in self.entries.iterdir() if path.is_dir()]
        if len(names) > MAX_FILES:
            msg = f"{self.entries} holds more than {MAX_FILES} entries: `smart-tuner store gc`."
            raise UserInputError(msg)
        return tuple(sorted(name for name in names if not name.startswith(".")))

    def read(self, name: str) -> Kept:
        """Read one entry; its files are not held against their digests yet.

        Raises:
            UserInputError: There is none of that name, or it is damaged.
        """
        folder = self.entries / name
        if name not in self.ids():
            msg = f"No entry {name!r} in {self.root}: `smart-tuner store ls` lists them."
            raise UserInputError(msg)
        entry = read_document(folder / ENTRY_FILE, Entry)
        if entry.id != name:
            msg = f"{folder} says that it is {entry.id!r}: restore its name."
            raise UserInputError(msg)
        paths = sorted((folder / RUNS).glob("*.json"))[-MAX_FILES:]
        runs = sorted((read_document(path, Run) for path in paths), key=lambda run: run.created)
        return Kept(entry, folder, tuple(runs))

    def exact(self, name: str, key: str) -> Kept | None:
        """The entry of a name with these very facts: an accepted one if there is, the newest."""
        found = [kept for kept in self._of(name) if kept.entry.key == key]
        return max(found, key=lambda kept: (kept.accepted, kept.entry.created), default=None)

    def baseline(self, name: str, facts: Mapping[str, str]) -> Kept | None:
        """What a new engine is compared with: the last accepted entry of a name.

        One of this device comes first, then one that does the same work.
        """

        def nearness(kept: Kept) -> tuple[int, int, str]:
            before = kept.entry.facts
            same = sum(before.get(fact) == facts.get(fact) for fact in SAME_WORK)
            return (before.get(DEVICE) == facts.get(DEVICE), same, kept.accepted)

        return max((kept for kept in self._of(name) if kept.accepted), key=nearness, default=None)

    def newest(self, name: str) -> Kept | None:
        """The newest entry of a name."""
        found = self._of(name)
        return found[-1] if found else None

    def _of(self, name: str) -> list[Kept]:
        """Entries of a name, the oldest first; damaged ones of other names stand in no way.

        Raises:
            UserInputError: One is damaged.
        """
        ids = [each for each in self.ids() if each.startswith(f"{name[:SHORT]}-")]
        found = [kept for kept in map(self.read, ids) if kept.entry.name == name]
        return sorted(found, key=lambda kept: kept.entry.created)

    def check_writable(self) -> None:
        """Refuse a store that could not take an entry later, before anything is tuned.

        Raises:
            EnvironmentNotFit: It is read-only.
        """
        places = [path for path in (self.root, self.entries) if path.exists()]
        if not all(os.access(path, os.W_OK | os.X_OK) for path in places):
            msg = f"{self.root} is read-only: allow writing, or take --no-archive to compare only."
            raise EnvironmentNotFit(msg)

    @contextlib.contextmanager
    def changing(self) -> Iterator[None]:
        """Hold the store while something appears in it or goes; readers are not kept waiting.

        Raises:
            EnvironmentNotFit: It cannot be written to.
        """
        try:
            with FileLock(self.root / LOCK):
                yield
        except OSError as error:
            msg = f"{self.root}: cannot be written ({error.strerror or error}); free or allow it."
            raise EnvironmentNotFit(msg) from error

    def add_run(self, entry: str, run: Run) -> None:
        """Add what one run of the gate found.

        Raises:
            EnvironmentNotFit: The store cannot be written to.
        """
        folder = self.entries / entry / RUNS
        with self.changing():
            folder.mkdir(exist_ok=True)
            stamp = run.created.replace(":", "").replace("+0000", "Z")
            write_json(folder / f"{stamp}-{secrets.token_hex(3)}.json", run.model_dump())


def open_store(root: Path, *, init: bool) -> Store:
    """Open a store.

    Args:
        root: Its folder.
        init: Start one if there is none.

    Raises:
        UserInputError: There is none, something else is in the way, or it is of a newer version.
        EnvironmentNotFit: It cannot be made.
    """
    root = root.expanduser().absolute()
    path = root / STORE_FILE
    if path.is_file():
        read_document(path, _StoreDocument)
        return Store(root)
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        msg = f"{root} is no store, and not empty: name another folder."
        raise UserInputError(msg)
    if not init:
        msg = f"No store in {root}: check the path, or take `smart-tuner ci --init` to start one."
        raise UserInputError(msg)
    try:
        (root / ENTRIES).mkdir(parents=True, exist_ok=True)
        (root / SOURCES).mkdir(exist_ok=True)
    except OSError as error:
        msg = f"Cannot make a store in {root}: {error.strerror or error}. Name another folder."
        raise EnvironmentNotFit(msg) from None
    write_json(path, {"schema_version": SCHEMA_VERSION})
    return Store(root)


def new_id(name: str, key: str, now: datetime.datetime) -> str:
    """A name for an entry that nobody else takes, and that sorts by time within a model."""
    return f"{name[:SHORT]}-{now:%Y%m%dT%H%M%S}-{key[:8]}-{secrets.token_hex(3)}"


def utc_now() -> datetime.datetime:
    """Now."""
    return datetime.datetime.now(datetime.timezone.utc)


def remove(folder: Path) -> None:
    """Delete a folder so that nobody sees half of it: it is renamed first."""
    doomed = folder.with_name(f".{folder.name}-{secrets.token_hex(3)}{PARTIAL}")
    folder.rename(doomed)
    shutil.rmtree(doomed, ignore_errors=True)
