"""Where commands get models and knob databases from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from smart_tuner.engine.backend import load_backend
from smart_tuner.errors import UserInputError
from smart_tuner.knobs.read import read_database
from smart_tuner.model.load import load_model
from smart_tuner.model.public import locate_model

if TYPE_CHECKING:
    from smart_tuner.knobs.database import KnobDatabase

MAX_DATABASE_BYTES = 64 << 20


def database_for(backend: str, model: str | None, saved: Path | None) -> KnobDatabase:
    """The knobs of a saved database, or of a backend, marked for a model if one is named.

    Raises:
        UserInputError: The file or the model cannot be read.
        EnvironmentNotFit: The backend is missing or cannot work here.
    """
    if saved is not None:
        return read_database(_text(saved))
    spec = load_model(locate_model(Path(model))) if model is not None else None
    return load_backend(backend).knobs(spec)


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
