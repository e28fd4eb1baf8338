"""Settings of a base that are no knobs: the same in both arms, never tuned.

All values are text. ``plugins`` (paths, ``os.pathsep`` between), ``refit``, ``strip_plan``,
``version_compatible`` (on, off), ``hardware_compatibility``, ``weight_streaming_budget`` (bytes,
auto, off), ``io_formats`` (``x:fp16:chw y:fp32:hwc8``), ``min_shapes``, ``opt_shapes``,
``max_shapes`` (``x:1x3x8x8 y:2``), ``profiles`` (shared, per_point) and ``compute_capability``
(``80``: build for a GPU that is not at hand) act on the build. ``RUN_SETTINGS`` act on the run.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from smart_tuner.errors import UserInputError
from smart_tuner.model.names import split_items
from smart_tuner.model.shapes import parse_shapes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

RUN_SETTINGS = ("launch", "objective", "io", "streams", "cold_l2", "states")
"""Read by the runner."""

COMPATIBILITIES = ("none", "ampere_plus", "same_compute_capability")
_SWITCH = ("off", "on")
_FORMAT_FORM = "name:fp16:chw"
_BLANK_BETWEEN = re.compile(r"(:(?:[a-z0-9_]+:[a-z0-9_]+|scalar|\d+(?:x\d+)*))\s+(?=\S)")

Shapes = dict[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class BuildSettings:
    """What a base says beside knobs, as far as it acts on the build.

    Attributes:
        plugins: Absolute paths of plugin libraries, in the order in which they are loaded.
        refit: Whether the engine's weights can be replaced.
        strip_plan: Whether the plan holds no weights; it is refitted before it runs.
        version_compatible: Whether newer versions can run the plan.
        hardware_compatibility: One of ``COMPATIBILITIES``.
        weight_streaming_budget: Bytes of weights on the GPU, ``auto`` or ``off``.
        io_formats: Type and format by input or output, e.g. ``("fp16", "chw")``.
        min_shapes: Smallest shapes that the engine takes, by input.
        opt_shapes: Shapes that it is tuned for.
        max_shapes: Largest shapes.
        profiles: ``shared`` or ``per_point``.
        compute_capability: E.g. ``80``; empty for the GPU at hand.
    """

    plugins: tuple[Path, ...] = ()
    refit: bool = False
    strip_plan: bool = False
    version_compatible: bool = False
    hardware_compatibility: str = "none"
    weight_streaming_budget: str = "off"
    io_formats: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    min_shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    opt_shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    max_shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    profiles: str = "shared"
    compute_capability: str = ""


def read_settings(base: Mapping[str, str]) -> tuple[BuildSettings, dict[str, str]]:
    """Read a base; returns its settings for the build, and the rest, which must be knobs.

    Raises:
        UserInputError: A value is not one that its setting takes, or a plugin is no file.
    """
    fields = {name: read(name, base[name]) for name, read in _READERS.items() if name in base}
    known = (*_READERS, *RUN_SETTINGS)
    rest = {name: value for name, value in base.items() if name not in known}
    return BuildSettings(**fields), rest  # type: ignore[arg-type]  # each read by its own reader


def _switch(name: str, value: str) -> bool:
    return _one_of(name, value, _SWITCH) == "on"


def _one_of(name: str, value: str, values: tuple[str, ...]) -> str:
    if value not in values:
        msg = f"{name} = {value}: not one of {', '.join(values)}."
        raise UserInputError(msg)
    return value


def _plugins(name: str, value: str) -> tuple[Path, ...]:
    paths = tuple(
        Path(part).expanduser().absolute() for part in value.split(os.pathsep) if part.strip()
    )
    for path in paths:
        if not path.is_file():
            msg = f"{name}: no file {path}; give the path of a plugin library."
            raise UserInputError(msg)
    return paths


def _budget(name: str, value: str) -> str:
    if value not in {"auto", "off"} and not value.isdecimal():
        msg = f"{name} = {value}: give a number of bytes, auto or off."
        raise UserInputError(msg)
    return value


def _shapes(_name: str, value: str) -> Shapes:
    return parse_shapes([_BLANK_BETWEEN.sub(r"\1,", value.strip())])


def _formats(name: str, value: str) -> dict[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    for tensor, text in split_items(
        _BLANK_BETWEEN.sub(r"\1,", value.strip()), _FORMAT_FORM, fields=2
    ):
        element, _, layout = text.partition(":")
        if found.setdefault(tensor, (element, layout)) != (element, layout):
            msg = f"{name}: tensor {tensor!r} has two formats; give one."
            raise UserInputError(msg)
    return found


def _capability(name: str, value: str) -> str:
    digits = value.lower().removeprefix("sm").replace(".", "")
    if not re.fullmatch(r"\d{2,3}", digits):
        msg = f"{name} = {value}: give it as digits, e.g. 80 or 120."
        raise UserInputError(msg)
    return digits


_READERS: Mapping[str, Callable[[str, str], object]] = {
    "plugins": _plugins,
    "refit": _switch,
    "strip_plan": _switch,
    "version_compatible": _switch,
    "hardware_compatibility": lambda name, value: _one_of(name, value, COMPATIBILITIES),
    "weight_streaming_budget": _budget,
    "io_formats": _formats,
    "min_shapes": _shapes,
    "opt_shapes": _shapes,
    "max_shapes": _shapes,
    "profiles": lambda name, value: _one_of(name, value, ("shared", "per_point")),
    "compute_capability": _capability,
}

BUILD_SETTINGS = tuple(_READERS)
"""Names that ``read_settings`` reads."""
