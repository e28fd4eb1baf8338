"""Enums of the SDK, whose members differ most between versions; see ``api``."""
# ruff: noqa: D102 - spelt as the SDK spells them, described in its manual

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

Shape = tuple[int, ...]


class EnumMember(Protocol):
    """A member of one of the SDK's enums."""

    @property
    def name(self) -> str: ...
    def __int__(self) -> int: ...


class EnumType(Protocol):
    """One of the SDK's enums."""

    @property
    def __members__(self) -> Mapping[str, EnumMember]: ...


def member(enum: EnumType, name: str) -> EnumMember | None:
    """Find a member of an enum, None where this version lacks it."""
    return enum.__members__.get(name)
