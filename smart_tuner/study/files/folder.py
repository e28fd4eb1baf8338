"""A study is one folder; this module knows its layout and nothing else does."""

from __future__ import annotations

import contextlib
import shlex
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import tomli_w
from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict, NonNegativeInt, ValidationError

from smart_tuner.errors import EnvironmentNotFit, StudyBusy, UserInputError
from smart_tuner.model.files import whole_file
from smart_tuner.model.toml import read_toml
from smart_tuner.study.setup.settings import SCHEMA_VERSION, describe

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LOCK = ".lock"
BEGUN = frozenset(
    {
        LOCK,
        "references",
        "engines",
        "precision",
        "platform.json",
        "study.toml.partial",
        "used.prior.toml",
    }
)
"""What a start that was killed may leave before there is a ``study.toml``."""


class _Document(BaseModel):
    """What every ``study.toml`` holds; further keys are kept."""

    model_config = ConfigDict(strict=True, extra="allow")

    seed: NonNegativeInt
    settings: dict[str, Any]
    identity: dict[str, str]
    space: dict[str, list[str]]
    accuracy: dict[str, Any]


@dataclass(frozen=True, slots=True)
class StudyFolder:
    """Paths of a study folder.

    Attributes:
        root: Absolute path of the folder.
    """

    root: Path

    @property
    def settings_file(self) -> Path:
        """``study.toml``: resolved settings and what a resume must match."""
        return self.root / "study.toml"

    @property
    def platform_file(self) -> Path:
        """``platform.json``: where the study ran."""
        return self.root / "platform.json"

    @property
    def journal(self) -> Path:
        """``journal.log``: Optuna's journal, the truth of the study."""
        return self.root / "journal.log"

    @property
    def references(self) -> Path:
        """Reference inputs and outputs."""
        return self.root / "references"

    @property
    def precision(self) -> Path:
        """What models with lowered regions are rewritten from: a copy, ranges, a recipe."""
        return self.root / "precision"

    @property
    def engines(self) -> Path:
        """Builds of the baseline and of finalists."""
        return self.root / "engines"

    @property
    def finalists(self) -> Path:
        """Fresh builds, for as long as finalists are confirmed."""
        return self.engines / "finalists"

    @property
    def workers(self) -> Path:
        """What workers build and say beside the leading session."""
        return self.root / "workers"

    @property
    def artifacts(self) -> Path:
        """Logs and engines as Optuna's artifacts, where trials are kept in a database."""
        return self.root / "artifacts"

    @property
    def winner(self) -> Path:
        """What ships: engine, manifest, loader."""
        return self.root / "winner"

    @property
    def result_file(self) -> Path:
        """``result.json``: the verdict, once there is one."""
        return self.root / "result.json"

    @property
    def trials_file(self) -> Path:
        """``trials.jsonl``: every finished trial, one a line."""
        return self.root / "trials.jsonl"

    @property
    def runs_file(self) -> Path:
        """``finalists.json``: figures of the fresh builds that finalists were confirmed with."""
        return self.root / "finalists.json"

    @property
    def page_file(self) -> Path:
        """``report.html``: the report to look at, on its own."""
        return self.root / "report.html"

    @property
    def report_file(self) -> Path:
        """``report.md``: the one-page report."""
        return self.root / "report.md"

    def trial(self, number: int) -> Path:
        """Folder of one trial."""
        return self.root / "trials" / str(number)

    def trial_numbers(self) -> tuple[int, ...]:
        """Numbers of the trials that have a folder, ascending."""
        names = [path.name for path in (self.root / "trials").glob("*")]
        return tuple(sorted(int(name) for name in names if name.isdecimal()))

    @property
    def exists(self) -> bool:
        """Whether a study was started here."""
        return self.settings_file.is_file()

    def create(self) -> tuple[Path, ...]:
        """Make the folder, and those above it that are missing.

        Returns:
            The folders that were made, the innermost first.

        Raises:
            EnvironmentNotFit: It cannot be made or written to.
            UserInputError: Something that is not a study is in the way.
        """
        try:
            missing = [path for path in (self.root, *self.root.parents) if not path.exists()]
            if self.root.is_dir() and not self.exists and not _is_free(self.root):
                msg = f"{self.root} holds files but no study: name another folder with --study."
                raise UserInputError(msg)
            self.root.mkdir(parents=True, exist_ok=True)
            probe = self.root / ".writable"
            probe.touch()
            probe.unlink()
        except OSError as error:
            msg = (
                f"Cannot write to {self.root}: {error.strerror}. Name another folder with --study."
            )
            raise EnvironmentNotFit(msg) from None
        return tuple(missing)

    def discard(self, made: tuple[Path, ...]) -> None:
        """Remove what a study that could not start has made; call it with the folder held.

        Args:
            made: What ``create`` returned.
        """
        for name in BEGUN - {LOCK}:
            path = self.root / name
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        (self.root / LOCK).unlink(missing_ok=True)
        for path in made:
            with contextlib.suppress(OSError):
                path.rmdir()

    @contextlib.contextmanager
    def scratch(self) -> Iterator[Path]:
        """A folder that is gone afterwards; after a kill, when the next session starts."""
        place = self.root / "scratch.partial"
        place.mkdir()
        try:
            yield place
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def remove_leftovers(self) -> None:
        """Delete files that a killed session was in the middle of writing.

        Not those of trials and of other workers, who may be at work: a lost trial's own are
        deleted when it is closed.
        """
        for path in tuple(self.root.rglob("*.partial")):
            if path.relative_to(self.root).parts[0] not in ("trials", "workers"):
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)

    def remove_engines(self) -> None:
        """Delete the builds of earlier sessions: each session makes its own."""
        shutil.rmtree(self.engines, ignore_errors=True)

    def remove_winner(self) -> None:
        """Delete what an earlier verdict shipped."""
        shutil.rmtree(self.winner, ignore_errors=True)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the study; the kernel lets go of it when this process dies, however it dies.

        Raises:
            StudyBusy: Another process holds it.
        """
        lock = FileLock(self.root / LOCK, timeout=0)
        try:
            lock.acquire()
        except Timeout:
            msg = (
                f"Another smart-tuner works in {self.root}: wait for it, or name another --study."
            )
            raise StudyBusy(msg) from None
        try:
            yield
        finally:
            lock.release()

    def write_settings(self, document: dict[str, Any]) -> None:
        """Write ``study.toml``; TOML has no null, so missing values are left out."""
        data = {"schema_version": SCHEMA_VERSION, **_without_none(document)}
        with whole_file(self.settings_file) as file:
            file.write(tomli_w.dumps(data).encode())

    def read_settings(self) -> dict[str, Any]:
        """Read ``study.toml``.

        Raises:
            UserInputError: There is no study, it is damaged, or it is newer than this version.
        """
        if not self.exists:
            words = shlex.join(["smart-tuner", "tune", "MODEL", "--study", str(self.root)])
            msg = f"No study in {self.root}: `{words}` starts one."
            raise UserInputError(msg)
        document = read_toml(self.settings_file, "study file")
        version = document.get("schema_version")
        if not isinstance(version, int):
            msg = f"{self.settings_file} names no schema_version: restore it, or start elsewhere."
            raise UserInputError(msg)
        if version > SCHEMA_VERSION:
            msg = (
                f"{self.root} was written by a newer smart_tuner (schema {version}, this one knows "
                f"{SCHEMA_VERSION}): upgrade smart_tuner."
            )
            raise UserInputError(msg)
        try:
            _Document.model_validate(document)
        except ValidationError as error:
            msg = f"{self.settings_file} is damaged ({describe(error)}): restore it, or start elsewhere."
            raise UserInputError(msg) from None
        return document


def _is_free(root: Path) -> bool:
    """Whether a folder without study.toml is empty or was left by a start that was killed."""
    names = {entry.name for entry in root.iterdir()}
    return not names or (LOCK in names and names <= BEGUN)


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(item) for key, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [_without_none(item) for item in value if item is not None]
    return value
