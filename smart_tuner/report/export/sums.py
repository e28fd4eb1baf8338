"""``SHA256SUMS`` of an export, in the form that ``sha256sum --check`` reads."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from smart_tuner.errors import UserInputError
from smart_tuner.model.files import file_digest

if TYPE_CHECKING:
    from pathlib import Path

SUMS = "SHA256SUMS"
MAX_CHARACTERS = 4_000_000
_LINE = re.compile(r"([0-9a-f]{64}) [ *](.+)")


def write_sums(folder: Path) -> None:
    """List every file of a folder with its digest."""
    names = sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and path.name != SUMS
    )
    lines = [f"{file_digest(folder / name)}  {name}\n" for name in names if "\n" not in name]
    (folder / SUMS).write_text("".join(lines), encoding="utf-8")


def read_sums(text: str, place: str) -> dict[str, str]:
    """Digest by path.

    Args:
        text: What ``write_sums`` wrote.
        place: Where it stands, for the message.

    Raises:
        UserInputError: A line is none of a list of digests, or a path leads out of the folder.
    """
    if len(text) > MAX_CHARACTERS:
        msg = f"{place} is too large to be a list of digests: restore it."
        raise UserInputError(msg)
    sums: dict[str, str] = {}
    for number, line in enumerate(text.split("\n")[:-1] if text else (), start=1):
        found = _LINE.fullmatch(line)
        name = found[2] if found else ""
        if not name or name.startswith("/") or ".." in name.split("/") or "\0" in name:
            msg = f"{place}, line {number}: no digest with a path inside the folder: restore it."
            raise UserInputError(msg)
        sums[name] = found[1] if found else ""
    return sums
