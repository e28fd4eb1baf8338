"""Where commands get models and knob databases from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from smart_tuner.engine.backend import load_backend
from smart_tuner.errors import EnvironmentNotFit, UserInputError
from smart_tuner.knobs.integer_values import with_integer_values
from smart_tuner.knobs.read import BUNDLED_NAME, bundled_database, read_database
from smart_tuner.model.load import load_model
from smart_tuner.model.public import locate_model

if TYPE_CHECKING:
    from smart_tuner.knobs.database import KnobDatabase

MAX_DATABASE_BYTES = 64 << 20

BackendOption = Annotated[str, typer.Option("--backend", metavar="NAME", help="Whose knobs.")]
DatabaseOption = Annotated[
    Path | None,
    typer.Option(
        "--database",
        metavar="FILE",
        help=f"Read a saved knob database instead, or the bundled {BUNDLED_NAME}.",
    ),
]
"""Options of every command that needs knobs and no study."""


def database_for(backend: str, model: str | None, saved: Path | None) -> KnobDatabase:
    """The knobs of a saved database, or of a backend, marked for a model if one is named.

    Args:
        backend: Name of the backend.
        model: Model file, or a public model's name.
        saved: File with a database, in TensorRT's form or our own; the name of the bundled one
            stands for it unless there is such a file.

    Raises:
        UserInputError: The file or the model cannot be read.
        EnvironmentNotFit: The backend is missing or cannot work here.
    """
    if saved is not None:
        return with_integer_values(_saved(saved))
    spec = load_model(locate_model(Path(model))) if model is not None else None
    found = load_backend(backend)
    try:
        return found.knobs(spec)
    except EnvironmentNotFit as error:
        msg = f"{error} To plan without it: --database FILE, or --database {BUNDLED_NAME}."
        raise EnvironmentNotFit(msg) from error


def _saved(path: Path) -> KnobDatabase:
    if str(path) == BUNDLED_NAME and not path.exists():
        return bundled_database()
    return read_database(_text(path))


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_DATABASE_BYTES:
            msg = f"{path} is over {MAX_DATABASE_BYTES >> 20} MiB: no knob database is."
            raise UserInputError(msg)
        return path.read_text(encoding="utf-8")
    except OSError as error:
        msg = f"Cannot read {path}: {error.strerror}."
        raise UserInputError(msg) from None
    except UnicodeDecodeError:
        msg = f"{path} is not text: give a knob database as `smart-tuner knobs --json` writes it."
        raise UserInputError(msg) from None
