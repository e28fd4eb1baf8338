"""Asking a child process which knobs the installed SDK has.

``python -m smart_tuner.backends.tensorrt.survey FOLDER`` reads ``request.json`` there and writes
``answer.json``. Making a configuration loads the driver and the compiler's libraries; what crashes
there is one sentence in the parent.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from smart_tuner.backends.tensorrt import api
from smart_tuner.backends.tensorrt.builder_knobs import BuilderKnob, builder_knobs, set_and_read
from smart_tuner.backends.tensorrt.builder_settings import EXTERNAL_SOURCES, LIBRARIES
from smart_tuner.backends.tensorrt.route_knobs import NO_ROUTES, route_knobs
from smart_tuner.engine.once import end_with_parent, run_once
from smart_tuner.errors import EnvironmentNotFit, SmartTunerError
from smart_tuner.knobs.database import KnobDatabase
from smart_tuner.knobs.knob import Knob
from smart_tuner.knobs.read import read_database, write_database
from smart_tuner.model.scratch import scratch_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from smart_tuner.backends.tensorrt.sdk import Sdk

SOURCE = "builder"

_CHILD = "smart_tuner.backends.tensorrt.survey"
_DEADLINE_SECONDS = 120.0
# Every major version of these libraries that a supported SDK was built with.
_VERSIONS = range(8, 14)


@dataclass(frozen=True, slots=True)
class Survey:
    """What the child found.

    Attributes:
        database: Route knobs and builder knobs, none marked for a model.
        notes: What a user should hear.
    """

    database: KnobDatabase
    notes: tuple[str, ...] = ()


@lru_cache(maxsize=4)
def survey(sdk: Sdk) -> Survey:
    """Ask the SDK's configuration about its knobs, in a child process, once for each SDK.

    Raises:
        EnvironmentNotFit: It gives none, or the child dies; says what it said last.
    """
    with scratch_folder() as folder:
        request = {
            "module": sdk.module.__name__,
            "version": str(sdk),
            "search_path": sys.path,
            "parent": os.getpid(),
        }
        (folder / "request.json").write_text(json.dumps(request), encoding="utf-8")
        complaint = run_once(_CHILD, folder, _DEADLINE_SECONDS)
        return _read_answer(folder / "answer.json", sdk, complaint)


def _read_answer(path: Path, sdk: Sdk, complaint: str) -> Survey:
    if not path.is_file():
        msg = f"{sdk} ended its process when it was asked for its knobs ({complaint})."
        raise EnvironmentNotFit(msg)
    answer = json.loads(path.read_text(encoding="utf-8"))
    if "error" in answer:
        msg = f"{sdk} cannot be asked for its knobs: {answer['error']}."
        raise EnvironmentNotFit(msg)
    return Survey(read_database(answer["database"]), tuple(answer["notes"]))


def examine(module: api.Module, version: str) -> Survey:
    """Ask a configuration of this process.

    Raises:
        EnvironmentNotFit: The SDK gives no configuration, or its knobs cannot be read.
    """
    builder = _builder(module)
    config = builder.create_builder_config()
    routes = route_knobs(config)
    notes = (NO_ROUTES,) if routes is None and isinstance(config, api.HasBuildRoutes) else ()
    versions = (*((routes.tuner_version,) if routes is not None else ()), version)
    knobs = (*(routes or ()), *_probed(module, builder))
    return Survey(KnobDatabase(knobs, ", ".join(versions)), notes)


def _builder(module: api.Module) -> api.Builder:
    try:
        return module.Builder(_quiet_logger(module))
    except (RuntimeError, TypeError) as error:
        reason = " ".join(str(error).split())
        msg = f"it gives no builder, which takes an NVIDIA GPU and its driver ({reason})"
        raise EnvironmentNotFit(msg) from error


def _probed(module: api.Module, builder: api.Builder) -> Iterator[Knob]:
    """The builder's settings, each with the values that read back as they were set."""
    fresh = builder.create_builder_config()
    for knob in builder_knobs(module, fresh):
        default = knob.default or knob.read(fresh)
        config = builder.create_builder_config()
        values = tuple(
            value
            for value in knob.values
            if value == default or set_and_read(knob, config, value) == value
        )
        choices = (default, *(value for value in values if value != default))
        if len(choices) > 1 or knob.is_open:
            yield Knob(
                knob.name,
                choices if len(choices) > 1 else (),
                default,
                knob.about.help,
                SOURCE,
                knob.is_open,
                opt_in=knob.about.opt_in,
                idle=knob.about.idle or _missing_library(knob),
            )


def _missing_library(knob: BuilderKnob) -> str:
    """Why a knob cannot work here: no library that it may call loads."""
    kind, _, name = knob.name.partition(":")
    wanted: tuple[str, ...] = ()
    if kind == "tactic_source" and name.upper() in LIBRARIES:
        wanted = (LIBRARIES[name.upper()],)
    elif kind == "preview" and name.upper() in EXTERNAL_SOURCES:
        wanted = tuple(LIBRARIES.values())
    if not wanted or any(_loads(f"{stem}.so.{major}") for stem in wanted for major in _VERSIONS):
        return ""
    return f"{' or '.join(wanted)} does not load on this machine"


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def _quiet_logger(module: api.Module) -> Any:
    """A logger that drops what is said of values that are tried out."""

    class Quiet(module.ILogger):  # type: ignore[name-defined,misc]  # known at run time only
        """Says nothing."""

        def __init__(self) -> None:
            module.ILogger.__init__(self)

        def log(self, severity: object, msg: str) -> None:
            """Drop a message."""

    return Quiet()


def main(arguments: Sequence[str]) -> int:
    """Entry point of the child."""
    folder = Path(arguments[0])
    request = json.loads((folder / "request.json").read_text(encoding="utf-8"))
    end_with_parent(request["parent"])
    sys.path[:] = request["search_path"]
    module = cast("api.Module", import_module(request["module"]))
    answer: dict[str, Any]
    try:
        found = examine(module, request["version"])
        answer = {"database": write_database(found.database), "notes": found.notes}
    except SmartTunerError as error:
        answer = {"error": str(error).rstrip(".")}
    (folder / "answer.json").write_text(json.dumps(answer), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
