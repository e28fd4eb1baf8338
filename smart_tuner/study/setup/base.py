"""The base: the production settings that routes are tried on top of."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smart_tuner.errors import UserInputError
from smart_tuner.knobs.database import KnobDatabase
from smart_tuner.model.files import file_digest
from smart_tuner.model.toml import read_toml

if TYPE_CHECKING:
    from collections.abc import Mapping

PLUGINS = "plugins"
"""The setting of a base that names files: libraries with custom layers, ``os.pathsep`` between."""

_SWITCH = {True: "on", False: "off"}


def read_base(path: Path | None) -> dict[str, str]:
    """Read a base from a TOML file: one line a setting, ``"threads:intra" = 2``.

    Returns:
        Setting to value, both as text; a boolean becomes ``on`` or ``off``.

    Raises:
        UserInputError: The file cannot be read or holds something else.
    """
    if path is None:
        return {}
    document = read_toml(path, "base")
    return {name: _as_text(path, name, value) for name, value in document.items()}


def merged_base(path: Path | None, given: Mapping[str, str]) -> dict[str, str]:
    """Read a base and put what flags said on top of it; the plugins' paths become absolute.

    Raises:
        UserInputError: The file cannot be read or holds something else, or a plugin is missing.
    """
    base = {**read_base(path), **given}
    if PLUGINS in base:
        files = [Path(name).expanduser().absolute() for name in base[PLUGINS].split(os.pathsep)]
        if missing := [file for file in files if not file.is_file()]:
            msg = f"No plugin library {missing[0]}: check the path of --plugin."
            raise UserInputError(msg)
        base[PLUGINS] = os.pathsep.join(map(str, files))
    return base


def plugin_digests(base: Mapping[str, str]) -> dict[str, str]:
    """Digest of each plugin's file, by a name for it."""
    files = [Path(name) for name in base.get(PLUGINS, "").split(os.pathsep) if name]
    return {f"plugin {file.name}": file_digest(file) for file in files}


def _as_text(path: Path, name: str, value: Any) -> str:
    if isinstance(value, bool):
        return _SWITCH[value]
    if isinstance(value, str | int | float):
        return str(value)
    msg = f'The base {path}: {name} must be text, a number or true/false, as "threads:intra" = 2.'
    raise UserInputError(msg)


def rebase(database: KnobDatabase, base: Mapping[str, str]) -> KnobDatabase:
    """Make the base's values the defaults, since routes say what differs from the base.

    Settings of the base that are no knobs are the backend's business and left alone here.

    Raises:
        UserInputError: A knob does not take the base's value.
    """
    knobs = []
    for knob in database:
        value = base.get(knob.name, knob.default)
        if not knob.allows(value):
            msg = f"The base sets {knob.name} to {value!r}; it takes {', '.join(knob.choices)}."
            raise UserInputError(msg)
        others = tuple(item for item in knob.choices if item != value)
        knobs.append(
            knob
            if value == knob.default
            else dataclasses.replace(knob, default=value, values=(value, *others))
        )
    return KnobDatabase(tuple(knobs), database.tuner_version)
