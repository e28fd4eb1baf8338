"""``manifest.json`` of a winner, read strictly: it may come from another machine."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from smart_tuner.errors import UserInputError

MANIFEST = "manifest.json"
SCHEMA_VERSION = 1
MAX_BYTES = 1 << 24
MAX_FILES = 1000


def _plain(name: str) -> str:
    if "/" in name or "\\" in name or "\0" in name or name in ("", ".", ".."):
        msg = f"{name!r} is no plain file name"
        raise ValueError(msg)
    return name


_CONFIG = ConfigDict(strict=True, extra="allow")
_Plain = Annotated[str, Field(max_length=255), AfterValidator(_plain)]
_Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class _Engine(BaseModel):
    model_config = _CONFIG

    file: _Plain
    fingerprint: str
    size_bytes: int | None = None
    timing_cache: _Plain | None = None


class _Model(BaseModel):
    model_config = _CONFIG

    sha256: _Digest


class _Manifest(BaseModel):
    """What is relied on; further keys are kept."""

    model_config = _CONFIG

    schema_version: int = 1
    model: _Model
    route: str
    base: dict[str, str] = Field(default_factory=dict)
    engine: _Engine
    files: Annotated[dict[_Plain, _Digest], Field(max_length=MAX_FILES)]
    platform: dict[str, Any] = Field(default_factory=dict)
    gain: Any = None
    losses: list[dict[str, Any]] = Field(default_factory=list)
    limits: list[dict[str, Any]] = Field(default_factory=list)


def parse_manifest(data: bytes, place: str) -> dict[str, Any]:
    """Read a manifest's bytes.

    Args:
        data: JSON.
        place: Where it stands, for the message.

    Raises:
        UserInputError: It is too large, damaged, or written by a newer version.
    """
    remedy = "run the same `tune` command again to ship anew."
    try:
        if len(data) > MAX_BYTES:
            msg = f"{place} is damaged (too large to be a manifest): {remedy}"
            raise UserInputError(msg)
        manifest = json.loads(data)
        version = manifest.get("schema_version") if isinstance(manifest, dict) else None
        if isinstance(version, int) and version > SCHEMA_VERSION:
            msg = f"{place} was written by a newer smart_tuner (schema {version}): upgrade."
            raise UserInputError(msg)
        _Manifest.model_validate(manifest)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))[:200]
        msg = f"{place} is damaged ({where}: {first['msg']}): {remedy}"
        raise UserInputError(msg) from None
    except (ValueError, RecursionError) as error:
        msg = f"{place} is damaged ({type(error).__name__}): {remedy}"
        raise UserInputError(msg) from None
    else:
        found: dict[str, Any] = manifest
        return found
