"""Files of a study folder as the dashboard's artifacts, for reading."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from optuna.artifacts.exceptions import ArtifactNotFound

from smart_tuner.dashboard.refusal import refuse

if TYPE_CHECKING:
    from collections.abc import Callable

    from smart_tuner.study.files.folder import StudyFolder

PREFIX = "artifacts:"

TRIAL_FILES = {
    "child.log": "text/plain; charset=utf-8",
    "result.json": "application/json",
}
STUDY_FILES = {
    "report.html": "text/html; charset=utf-8",
    "report.md": "text/plain; charset=utf-8",
    "trials.jsonl": "text/plain; charset=utf-8",
    "study.toml": "text/plain; charset=utf-8",
    "platform.json": "application/json",
    "winner/manifest.json": "application/json",
}
"""What is shown, by path and type; engines and references are too large, and no text."""


@dataclass(frozen=True, slots=True)
class FolderArtifacts:
    """Optuna's artifact store over study folders; an id names study, trial and file.

    Attributes:
        folder_of: Finds a study folder by its number.
    """

    folder_of: Callable[[int], StudyFolder]

    def open_reader(self, artifact_id: str) -> BinaryIO:
        """Open a file of the lists above; no other file can be named.

        Raises:
            ArtifactNotFound: There is no such file.
        """
        try:
            study, trial, place = (int(part, 16) for part in artifact_id.split("-"))
            folder = self.folder_of(study)
            is_study = trial == 0
            names = list(STUDY_FILES if is_study else TRIAL_FILES)
            root = folder.root if is_study else folder.trial(trial - 1)
            return (root / names[place]).open("rb")
        except (ValueError, IndexError, KeyError, OSError):
            msg = f"No such file: {artifact_id}"
            raise ArtifactNotFound(msg) from None

    def write(self, artifact_id: str, content_body: BinaryIO) -> None:
        """Refuse: a study is written by ``tune`` alone."""
        del artifact_id, content_body
        refuse()

    def remove(self, artifact_id: str) -> None:
        """Refuse, likewise."""
        del artifact_id
        refuse()


def study_artifacts(study: int, folder: StudyFolder) -> dict[str, str]:
    """System attributes that list a study's files."""
    found = (
        (place, name, kind)
        for place, (name, kind) in enumerate(STUDY_FILES.items())
        if (folder.root / name).is_file()
    )
    return dict(_entry(f"{study:x}-0-{place:x}", name, kind) for place, name, kind in found)


def trial_artifacts(study: int, number: int, folder: StudyFolder) -> dict[str, str]:
    """System attributes that list a trial's files."""
    found = (
        (place, name, kind)
        for place, (name, kind) in enumerate(TRIAL_FILES.items())
        if (folder.trial(number) / name).is_file()
    )
    return dict(
        _entry(f"{study:x}-{number + 1:x}-{place:x}", name, kind) for place, name, kind in found
    )


def _entry(artifact_id: str, name: str, kind: str) -> tuple[str, str]:
    meta = {"artifact_id": artifact_id, "filename": name, "mimetype": kind, "encoding": None}
    return f"{PREFIX}{artifact_id}", json.dumps(meta)
