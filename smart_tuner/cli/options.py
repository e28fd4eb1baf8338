"""Flags made from ``StudySettings``: one definition for command line, TOML and Python."""

from __future__ import annotations

import functools
import inspect
import types
import typing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from smart_tuner.model.toml import read_toml
from smart_tuner.study.setup.settings import StudySettings, make_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pydantic.fields import FieldInfo

_PLAIN = (int, float, bool, Path)

SECTIONS: Mapping[str, Mapping[str, str]] = {
    "Arguments": {"model": "MODEL"},
    "Study": {
        "budget": "TIME",
        "trials": "N",
        "study": "FOLDER",
        "min_gain": "GAIN",
        "max_regression": "SHARE",
        "sampler": "NAME",
        "prior": "FILE",
        "first": "ROUTE",
        "reuse": "FOLDER",
    },
    "Limits and seed": {
        "trial_timeout": "TIME",
        "memory_limit": "SIZE",
        "max_memory": "SIZE",
        "max_engine_size": "SIZE",
        "max_build_time": "TIME",
        "seed": "N",
    },
    "Inputs": {
        "shapes": "NAME:SIZES",
        "inputs": "FILES",
        "outputs": "FILES",
        "held_out": "FILES",
        "input_range": "RANGE",
        "workload": "FILE",
    },
    "Precision": {
        "regions": "WHAT",
        "precisions": "TYPES",
        "calibration": "HOW",
    },
    "Accuracy": {
        "metric": "NAME",
        "epsilon": "LOSS",
        "rtol": "X",
        "atol": "X",
        "over_pairs": "WHICH",
        "reference": "WHO",
    },
    "Measurement": {
        "statistic": "NAME",
        "objective": "NAME",
        "streams": "N",
        "io": "WHERE",
        "launch": "MODE",
    },
    "Engine": {
        "plugin": "LIB",
        "state": "PAST:PRESENT",
        "min_shapes": "NAME:SIZES",
        "opt_shapes": "NAME:SIZES",
        "max_shapes": "NAME:SIZES",
    },
    "Workers": {
        "workers": "N",
        "devices": "LIST",
        "storage": "URL",
    },
    "Backend and knobs": {
        "backend": "NAME",
        "base": "FILE",
        "only": "PATTERN",
        "freeze": "PATTERN",
        "ask": "KNOB",
        "values": "KNOB=VALUES",
        "all_knobs": "",
    },
}
"""Section of the help, setting and what stands for its value, in the order of the help."""


def with_settings(names: Iterable[str]) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Give a command one flag for each named setting.

    The decorated function gets ``settings: dict[str, Any]``, the settings that the user gave on
    the command line, and its own parameters as they stand.
    """
    wanted = set(names)
    placed = [
        (section, name, metavar)
        for section, settings in SECTIONS.items()
        for name, metavar in settings.items()
        if name in wanted
    ]

    def decorate(function: Callable[..., int]) -> Callable[..., int]:
        @functools.wraps(function)
        def run(**arguments: Any) -> int:
            given = {name: arguments.pop(name) for _, name, _ in placed}
            return function(
                settings={key: value for key, value in given.items() if value not in (None, [])},
                **arguments,
            )

        own = [
            parameter
            for parameter in inspect.signature(function, eval_str=True).parameters.values()
            if parameter.name != "settings"
        ]
        made = [_parameter(*place) for place in placed]
        ahead = int("model" in wanted)  # an argument comes before a command's own options
        parameters = [*made[:ahead], *own, *made[ahead:]]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {item.name: item.annotation for item in parameters}
        return run

    return decorate


def _parameter(section: str, name: str, metavar: str) -> inspect.Parameter:
    """One command-line parameter for one setting; ``None`` means "not given"."""
    field = StudySettings.model_fields[name]
    plain = _plain_type(field)
    if field.is_required():
        kind: Any = typer.Argument(help=field.description, metavar=metavar, show_default=False)
        return inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, annotation=Annotated[plain, kind]
        )
    option = typer.Option(
        f"--{name.replace('_', '-')}",
        help=f"{field.description}{_remarks(name, field, plain)}",
        metavar=metavar or None,
        rich_help_panel=section,
        show_default=False,
    )
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[typing.Optional[plain], option],  # noqa: UP045, typer needs it on 3.10
    )


def _remarks(name: str, field: FieldInfo, plain: Any) -> str:
    repeats = " [repeatable]" if plain == list[str] else ""
    is_plain = field.default in (None, (), False)
    return repeats + ("" if is_plain else f" [default: {_shown(name, field)}]")


def _plain_type(field: FieldInfo) -> Any:
    """The type that the command line reads; what has its own syntax is read as text."""
    if field.metadata and any(hasattr(item, "func") for item in field.metadata):
        return str
    annotation: Any = field.annotation
    is_union = isinstance(annotation, types.UnionType)
    first = typing.get_args(annotation)[0] if is_union else annotation
    if typing.get_origin(first) is tuple:
        return list[str]
    return first if first in _PLAIN else str


def _shown(name: str, field: FieldInfo) -> str:
    if name in {"budget", "trial_timeout"}:
        return f"{field.default / 60:g}m"
    return str(field.default)


def merged(config: Path | None, given: dict[str, Any]) -> StudySettings:
    """Settings of a TOML file with the command line's on top."""
    return make_settings({**(read_toml(config, "configuration") if config else {}), **given})
