"""What must be the same when a study is resumed, since its trials would mean nothing otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smart_tuner.errors import StudyMismatch

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from smart_tuner.engine.platform import Platform

MAY_DIFFER = frozenset({"cpu_quota"})
"""Details of the platform that warn when they change, instead of refusing."""

Identity = dict[str, str]
"""One line a fact: what it is, and its value or digest."""


def platform_identity(platform: Platform) -> Identity:
    """The facts of a platform."""
    facts = {
        "device": platform.device,
        "backend version": platform.backend_version,
        "tuner version": platform.tuner_version,
    }
    details = {f"platform {key}": value for key, value in platform.details.items()}
    return facts | {
        k: v for k, v in details.items() if k.removeprefix("platform ") not in MAY_DIFFER
    }


def check_identity(before: Mapping[str, str], now: Mapping[str, str], folder: Path) -> None:
    """Refuse to continue a study that was about something else.

    Raises:
        StudyMismatch: Something differs; names each thing, and the two ways out.
    """
    differing = [
        f"{name} was {_short(before.get(name))}, is {_short(now.get(name))}"
        for name in sorted({*before, *now})
        if before.get(name) != now.get(name)
    ]
    if differing:
        msg = (
            f"The study in {folder} cannot be continued: {'; '.join(differing)}. Restore what "
            "changed, or start a new study with --study OTHER_FOLDER."
        )
        raise StudyMismatch(msg)


def _short(value: str | None) -> str:
    if value is None:
        return "not there"
    return value if len(value) <= 40 else f"{value[:12]}..."
