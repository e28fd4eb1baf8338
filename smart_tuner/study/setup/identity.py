"""What must be the same when a study is resumed, since its trials would mean nothing otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from smart_tuner.errors import StudyMismatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from smart_tuner.engine.platform import Platform

KNOB_DATABASE = "knob database"
CPU_QUOTA = "platform cpu_quota"

UUID = "uuid"
"""Detail of a platform that names one GPU: another one of the same model is as good."""

MAY_DIFFER = frozenset({"driver", CPU_QUOTA})
"""Facts that warn when they change, instead of refusing."""

LONGEST = 40
NAMED = 5

Identity = dict[str, str]
"""One line a fact: what it is, and its value or digest."""

Space = Mapping[str, tuple[str, ...]]
"""Choices by knob name, the default first."""


def platform_identity(platform: Platform) -> Identity:
    """The facts of a platform."""
    details = {f"platform {key}": value for key, value in platform.details.items() if key != UUID}
    return {
        "device": platform.device,
        "driver": platform.driver,
        "backend version": platform.backend_version,
        "tuner version": platform.tuner_version,
        **details,
    }


def differences(before: Mapping[str, str], now: Mapping[str, str]) -> tuple[str, ...]:
    """Each fact that must not differ and does, as text."""
    return tuple(_changes(before, now, lambda name: name not in MAY_DIFFER))


def warnings(before: Mapping[str, str], now: Mapping[str, str]) -> tuple[str, ...]:
    """Each fact that may differ and does, as a sentence that says what it means."""
    changed = _changes(before, now, MAY_DIFFER.__contains__)
    return tuple(f"{text}: earlier trials may rank routes differently." for text in changed)


def space_differences(before: Space, now: Space) -> tuple[str, ...]:
    """How the searched knobs differ, as text."""
    gone = [name for name in before if name not in now]
    new = [name for name in now if name not in before]
    changed = [
        f"{name} was {'|'.join(before[name])}, is {'|'.join(now[name])}"
        for name in before
        if name in now and before[name] != now[name]
    ]
    return tuple(
        f"{what} {_first(items)}"
        for what, items in (
            ("knobs no longer searched are", gone),
            ("knobs newly searched are", new),
            ("values of", changed),
        )
        if items
    )


def refuse(found: Iterable[str], folder: Path) -> None:
    """Refuse to continue a study if something differs.

    Args:
        found: What differs.
        folder: The study folder.

    Raises:
        StudyMismatch: Names each thing, and the two ways out.
    """
    things = "; ".join(found)
    if things:
        msg = (
            f"The study in {folder} cannot be continued: {things}. Restore what changed, or "
            "start a new study with --study OTHER_FOLDER."
        )
        raise StudyMismatch(msg)


def _changes(
    before: Mapping[str, str], now: Mapping[str, str], counts: Callable[[str], bool]
) -> Iterator[str]:
    for name in sorted({*before, *now}):
        if counts(name) and before.get(name) != now.get(name):
            yield f"{name} was {_short(before.get(name))}, is {_short(now.get(name))}"


def _short(value: str | None) -> str:
    if value is None:
        return "not there"
    return value if len(value) <= LONGEST else f"{value[: LONGEST - 3]}..."


def _first(items: list[str]) -> str:
    rest = len(items) - NAMED
    return ", ".join(items[:NAMED]) + (f" and {rest} more" if rest > 0 else "")
