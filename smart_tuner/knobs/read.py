"""Reading and writing knob databases, and the digest that a study is resumed by."""

from __future__ import annotations

import hashlib
import json
from importlib.resources import files
from typing import TYPE_CHECKING

from smart_tuner.errors import UserInputError
from smart_tuner.knobs.check import refuse
from smart_tuner.knobs.own_form import read_own_form, write_own_form
from smart_tuner.knobs.tensorrt_form import read_tensorrt_form

if TYPE_CHECKING:
    from smart_tuner.knobs.database import KnobDatabase

MAX_CHARACTERS = 16_000_000
"""Length of the largest text that is parsed; TensorRT's own list has 45,000 characters."""

BUNDLED_NAME = "tensorrt-2.19.45"
"""What ``bundled_database`` is called on the command line."""

_BUNDLED = "all_build_routes-2.19.45.json"


def read_database(text: str) -> KnobDatabase:
    """Read a knob database from JSON, in TensorRT's form or our own.

    Raises:
        UserInputError: No JSON, neither form, or a fault; the message names the place.
    """
    if len(text) > MAX_CHARACTERS:
        refuse("text", f"longer than {MAX_CHARACTERS} characters")
    try:
        data = json.loads(text.removeprefix("\ufeff"))
    except RecursionError:
        refuse("text", "nested too deep")
    except json.JSONDecodeError as error:
        refuse(f"line {error.lineno}, column {error.colno}", f"no JSON ({error.msg})")
    except ValueError:
        # Python refuses to convert integers of thousands of digits.
        refuse("text", "no JSON that a knob database may be: a number is too long")
    if isinstance(data, dict) and "tuner_options" in data:
        return read_tensorrt_form(data)
    if isinstance(data, dict) and "schema_version" in data:
        return read_own_form(data)
    msg = (
        "Cannot read the knob database: it has neither tuner_options (TensorRT's form) nor "
        "schema_version (written by smart-tuner)."
    )
    raise UserInputError(msg)


def write_database(database: KnobDatabase) -> str:
    """Write a database as JSON in our own form; ``read_database`` gives an equal one back."""
    return write_own_form(database)


def database_digest(database: KnobDatabase) -> str:
    """Identity of a database for resuming a study: SHA-256 as 64 hexadecimal digits.

    It covers each knob's name, choices, default and openness, and nothing else: better help, or
    a knob that turns out idle on a model, changes no study. The order of the knobs does not
    matter, since every record goes by name; the order of a knob's choices does, since Optuna
    stores them as an ordered list and refuses another order.
    """
    knobs = sorted((knob.name, knob.default, knob.is_open, knob.choices) for knob in database)
    text = json.dumps(knobs, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def bundled_database() -> KnobDatabase:
    """The 209 route knobs of tuner 2.19.45 (TensorRT 11.1, help shortened), for simulation."""
    resource = files("smart_tuner.knobs") / "data" / _BUNDLED
    return read_database(resource.read_text(encoding="utf-8"))
