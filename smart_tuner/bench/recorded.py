"""Workloads that were recorded on real compilers, by file or folder."""

from __future__ import annotations

import functools
import gzip
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, Field, ValidationError

from smart_tuner.errors import UserInputError
from smart_tuner.knobs.database import KnobDatabase
from smart_tuner.knobs.knob import Knob
from smart_tuner.model.toml import read_toml
from smart_tuner.route.parse import parse_route
from smart_tuner.simulate.description import read_description
from smart_tuner.simulate.fitted import StudiedTrial, fit_compiler
from smart_tuner.simulate.t4 import read_t4

if TYPE_CHECKING:
    from smart_tuner.simulate.compiler import SimulatedCompiler
    from smart_tuner.simulate.recorded import RecordedCompiler

    Compiler = SimulatedCompiler | RecordedCompiler

MAX_BYTES = 512 << 20
TRIALS_FILE, SETTINGS_FILE = "trials.jsonl", "study.toml"


class _Row(BaseModel):
    """What counts of a line of ``trials.jsonl``."""

    route: str
    outcome: str
    latency_ms: Annotated[float, Field(gt=0)] | None
    half_width: Annotated[float, Field(ge=0)] | None
    unchanged: bool
    seconds: dict[str, float]


def label(path: Path) -> str:
    """The last two parts of a path without endings: how a recorded workload is called."""
    name = path.name.removesuffix(".gz").removesuffix(".json")
    return f"{path.parent.name}/{name}"


@functools.lru_cache(maxsize=8)
def load_recorded(path: Path) -> Compiler:
    """Read a recorded workload.

    Args:
        path: A study folder or what is kept of one (``study.toml`` with ``trials.jsonl``), from
            which effects are fitted; a T4 file, plain or gzip; or a replay description.

    Raises:
        UserInputError: It is none of these, or cannot be read.
    """
    if path.is_dir():
        return _load_study(path)
    text = _read(path)
    if '"simulated"' in text[:4096] or '"recorded"' in text[:4096]:
        return read_description(text).compiler
    return read_t4(text, label(path))


def _load_study(folder: Path) -> Compiler:
    space = read_toml(folder / SETTINGS_FILE, "study").get("space", {})
    knobs = tuple(
        Knob(name, tuple(map(str, values)), str(values[0]), source="recorded")
        for name, values in space.items()
    )
    if not knobs:
        msg = f"{folder / SETTINGS_FILE} lists no space: it is not a study of this version."
        raise UserInputError(msg)
    database = KnobDatabase(knobs, label(folder))
    lines = _read(folder / TRIALS_FILE).splitlines()
    trials = [_studied(line, database, folder) for line in lines]
    return fit_compiler(knobs, trials, label(folder))


def _studied(line: str, database: KnobDatabase, folder: Path) -> StudiedTrial:
    try:
        row = _Row.model_validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"])) or "a line"
        msg = f"{folder / TRIALS_FILE}: no trial at {place}: {first['msg']}."
        raise UserInputError(msg) from None
    return StudiedTrial(
        route=parse_route(row.route, database),
        outcome=row.outcome,
        latency_ms=row.latency_ms,
        half_width=row.half_width,
        unchanged=row.unchanged,
        seconds=row.seconds.get("total", 0.0),
    )


def _read(path: Path) -> str:
    """Read a text file, plain or gzip, of a size that can be parsed."""
    opened = gzip.open if path.suffix == ".gz" else Path.open
    try:
        with opened(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
        text = data.decode()
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or "not a whole gzip file"
        msg = f"Cannot read the recorded workload {path}: {reason}."
        raise UserInputError(msg) from None
    except UnicodeDecodeError:
        msg = f"{path} is not text: give a T4 file, a replay description or a study folder."
        raise UserInputError(msg) from None
    if len(data) > MAX_BYTES:
        msg = f"{path} is over {MAX_BYTES >> 20} MiB: no recorded workload is."
        raise UserInputError(msg)
    return text
