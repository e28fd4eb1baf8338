"""Folders that appear whole, or not at all."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

from smart_tuner.errors import EnvironmentNotFit, UserInputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def new_folder(place: Path, option: str, *, replace: bool = False) -> Iterator[Path]:
    """Fill a folder beside its final place, then put it there.

    Args:
        place: The final place; its parents are made.
        option: The option that names another place, for messages.
        replace: Files that are there already give way to new ones of the same name; others stay.
            Without it a folder with anything in it is refused.

    Yields:
        The folder to fill.

    Raises:
        UserInputError: Something is in the way.
        EnvironmentNotFit: The place cannot be written to, or the disk is full.
    """
    place = place.absolute()
    check_new_folder(place, option, replace=replace)
    making = place.with_name(f"{place.name}.partial")
    made = [path for path in place.parents if not path.exists()]
    try:
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir(parents=True)
        yield making
        _move(making, place)
    except BaseException as error:
        shutil.rmtree(making, ignore_errors=True)
        for path in made:
            if path.is_dir() and not any(path.iterdir()):
                path.rmdir()
        if isinstance(error, OSError):
            msg = f"Cannot write to {place}: {error.strerror}. Name another place with {option}."
            raise EnvironmentNotFit(msg) from None
        raise


def check_new_folder(place: Path, option: str, *, replace: bool) -> None:
    """Refuse a place that could not be filled, before any work is done.

    Raises:
        UserInputError: Something is in the way.
        EnvironmentNotFit: Its surroundings allow no folder.
    """
    if place.exists() and not place.is_dir():
        msg = f"{place} is a file: name a folder with {option}."
        raise UserInputError(msg)
    if place.is_dir() and any(place.iterdir()) and not replace:
        msg = f"{place} is there already: take --force to overwrite it, or name another {option}."
        raise UserInputError(msg)
    around = next(path for path in (place, *place.parents) if path.exists())
    if not around.is_dir() or not os.access(around, os.W_OK):
        msg = f"Cannot write to {place}: {around} allows no folder in it. Name another {option}."
        raise EnvironmentNotFit(msg)


def _move(making: Path, place: Path) -> None:
    """Put a finished folder in its place; where one is already, its files one by one."""
    if not place.exists():
        making.replace(place)
        return
    for path in sorted(making.rglob("*")):
        target = place / path.relative_to(making)
        if path.is_dir():
            target.mkdir(exist_ok=True)
        else:
            path.replace(target)
    shutil.rmtree(making)
