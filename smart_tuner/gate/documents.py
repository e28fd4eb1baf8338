"""What a store keeps as JSON, read strictly: sizes, names, numbers and paths are bounded."""

from __future__ import annotations

import json
import math
import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Annotated, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from smart_tuner.errors import UserInputError

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA_VERSION = 1
MAX_BYTES = 1 << 22
MAX_FILES = 10_000

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$"
"""Names of models and entries: safe as a file name anywhere."""


def _inside(path: str) -> str:
    parts = PurePosixPath(path)
    if parts.is_absolute() or ".." in parts.parts or "\\" in path or "\0" in path or not path:
        msg = f"{path!r} leads out of its folder"
        raise ValueError(msg)
    return path


def _finite(value: float) -> float:
    if not math.isfinite(value):
        msg = f"{value} is no finite number"
        raise ValueError(msg)
    return value


_CONFIG = ConfigDict(strict=True, extra="forbid", frozen=True)
Text = Annotated[str, Field(max_length=100_000)]
Name = Annotated[str, Field(pattern=NAME)]
Relative = Annotated[str, Field(max_length=1000), AfterValidator(_inside)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Number = Annotated[float, AfterValidator(_finite)]
Milliseconds = Annotated[float, Field(gt=0), AfterValidator(_finite)]
Numbers = Annotated[list[Number], Field(max_length=1000)]
Texts = Annotated[dict[Text, Text], Field(max_length=1000)]
Files = Annotated[dict[Relative, Digest], Field(max_length=MAX_FILES)]


class Artefact(BaseModel):
    """One archived engine.

    Attributes:
        folder: Its folder inside the entry.
        file: The engine file in that folder.
        route: Knob and value of each setting; empty for the default.
        fingerprint: What the compiler made of it.
        size_bytes: Size of the compiled artefact; ``None`` if it is not known.
    """

    model_config = _CONFIG

    folder: Relative
    file: Relative
    route: Annotated[list[tuple[Text, Text]], Field(max_length=1000)]
    fingerprint: Text
    size_bytes: int | None


class Entry(BaseModel):
    """``entry.json``: one tuned engine with everything it was proved by.

    Attributes:
        schema_version: Of this document.
        id: Name of the entry's folder.
        name: What is tuned, the same over all versions of a model.
        created: UTC, ISO 8601.
        key: Digest of the facts.
        facts: What the engine depends on.
        sentence: The verdict of the study.
        candidate: What ships.
        default: The engine of the base with no route; the candidate itself if that ships.
        base: The production configuration, with what the baseline decided.
        accuracy: The accuracy constraint, every epsilon a number.
        sources: Files that engines open again when they are loaded, kept once for all entries;
            the model is the first. Empty if engines hold everything.
        model_file: Which of them is the model.
        provisional: Inputs were synthetic.
        files: SHA-256 of every file of the entry, runs left out.
    """

    model_config = _CONFIG

    schema_version: int
    id: Name
    name: Name
    created: Text
    key: Text
    facts: Texts
    sentence: Text
    candidate: Artefact
    default: Artefact
    base: Texts
    accuracy: dict[Text, object]
    sources: Files
    model_file: Relative | None
    provisional: bool
    files: Files


class Run(BaseModel):
    """``runs/*.json``: what one run of the gate measured on an entry.

    Attributes:
        schema_version: Of this document.
        created: UTC, ISO 8601, with microseconds: runs are sorted by it.
        accepted: Whether later runs are compared with this entry.
        regression: Whether the run found a slow-down beyond noise.
        sentence: What was compared and found.
        over_default: ln(candidate / default) of each round.
        candidate_ms: Latency of the candidate, one figure a round.
    """

    model_config = _CONFIG

    schema_version: int
    created: Text
    accepted: bool
    regression: bool
    sentence: Text
    over_default: Numbers
    candidate_ms: Annotated[list[Milliseconds], Field(max_length=1000)]


Document = TypeVar("Document", bound=BaseModel)


def is_name(text: str) -> bool:
    """Whether a text may name a model or an entry."""
    return re.fullmatch(NAME, text) is not None


def read_document(path: Path, kind: type[Document]) -> Document:
    """Read one document of a store.

    Raises:
        UserInputError: It is missing, too large, damaged or of a newer version.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            msg = f"{path} is too large to be what it is called: restore it."
            raise UserInputError(msg)
        return parse_document(path.read_bytes(), str(path), kind)
    except OSError as error:
        msg = f"{path} cannot be read ({error.strerror or error}): restore it."
        raise UserInputError(msg) from None


def parse_document(data: bytes, place: str, kind: type[Document]) -> Document:
    """Parse one document.

    Args:
        data: JSON.
        place: Where it stands, for the message.
        kind: What it should be.

    Raises:
        UserInputError: It is damaged or of a newer version.
    """
    try:
        if len(data) > MAX_BYTES:
            msg = f"{place} is too large to be what it is called: restore it."
            raise UserInputError(msg)
        document = json.loads(data)
        version = document.get("schema_version") if isinstance(document, dict) else None
        if isinstance(version, int) and version > SCHEMA_VERSION:
            msg = (
                f"{place} was written by a newer smart_tuner (schema {version}, this one knows "
                f"{SCHEMA_VERSION}): upgrade smart_tuner."
            )
            raise UserInputError(msg)
        return kind.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))[:200]
        msg = f"{place} is damaged ({where}: {first['msg']}): restore it."
        raise UserInputError(msg) from None
    except (ValueError, RecursionError):
        msg = f"{place} is damaged (not JSON): restore it."
        raise UserInputError(msg) from None
