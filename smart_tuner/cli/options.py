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
from smart_tuner.study.settings import StudySettings, make_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pydantic.fields import FieldInfo

_PLAIN = (int, float, bool, Path)


def with_settings(names: Iterable[str]) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Give a command one flag for each named setting.

    The decorated function gets ``settings: dict[str, Any]``, the settings that the user gave on
    the command line, and its own parameters as they stand.
    """
    chosen = tuple(names)

    def decorate(function: Callable[..., int]) -> Callable[..., int]:
        @functools.wraps(function)
        def run(**arguments: Any) -> int:
            given = {name: arguments.pop(name) for name in chosen}
            return function(
                settings={key: value for key, value in given.items() if value not in (None, [])},
                **arguments,
            )

        own = [
            parameter
            for parameter in inspect.signature(function, eval_str=True).parameters.values()
            if parameter.name != "settings"
        ]
        made = [_parameter(name, StudySettings.model_fields[name]) for name in chosen]
        parameters = [*made, *own]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {item.name: item.annotation for item in parameters}
        return run

    return decorate


def _parameter(name: str, field: FieldInfo) -> inspect.Parameter:
    """One command-line parameter for one setting; ``None`` means "not given"."""
    plain = _plain_type(field)
    if field.is_required():
        kind: Any = typer.Argument(help=field.description)
        return inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, annotation=Annotated[plain, kind]
        )
    flag = f"--{name.replace('_', '-')}"
    shown = "" if field.default in (None, (), False) else f" [default: {_shown(name, field)}]"
    option = typer.Option(flag, help=f"{field.description}{shown}", show_default=False)
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[typing.Optional[plain], option],  # noqa: UP045, typer needs it on 3.10
    )


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
