"""Which studies lie in a folder, and what to call them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smart_tuner.errors import SmartTunerError, UserInputError
from smart_tuner.study.files.folder import StudyFolder

if TYPE_CHECKING:
    from collections.abc import Iterator

DEPTH = 4
"""How many folders below the one that is named studies are looked for."""


def study_folders(root: Path) -> list[StudyFolder]:
    """The studies in a folder, or the one that it is, by path.

    Raises:
        UserInputError: There is none.
    """
    found = [StudyFolder(path) for path in _studies(root, DEPTH)]
    if not found:
        msg = f"No study in {root}: name a study folder, or one that holds some."
        raise UserInputError(msg)
    return found


def _studies(folder: Path, depth: int) -> Iterator[Path]:
    """Study folders below a folder; nothing is looked for inside of them."""
    if StudyFolder(folder).exists:
        yield folder
        return
    if depth == 0:
        return
    try:
        with os.scandir(folder) as entries:
            names = sorted(
                entry.name
                for entry in entries
                if entry.is_dir(follow_symlinks=False) and not entry.name.startswith(".")
            )
    except OSError:
        return
    for name in names:
        yield from _studies(folder / name, depth - 1)


def study_name(folder: StudyFolder, root: Path) -> str:
    """A name for people: ``resnet50.onnx on NVIDIA H200: nightly/resnet.study``.

    Args:
        folder: The study folder.
        root: The folder in which studies are looked for.
    """
    model = _model(folder)
    device = _device(folder)
    place = folder.root.relative_to(root) if folder.root != root else Path(root.name)
    where = f" on {device}" if device else ""
    return f"{model}{where}: {place}" if model else str(place)


def _model(folder: StudyFolder) -> str:
    try:
        settings: dict[str, Any] = folder.read_settings()["settings"]
    except SmartTunerError:
        return ""
    return str(settings.get("model", "")).rsplit("/", 1)[-1]


def _device(folder: StudyFolder) -> str:
    try:
        platform: Any = json.loads(folder.platform_file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""
    return str(platform.get("device", "")) if isinstance(platform, dict) else ""
