"""Our own list of knobs: every field of every knob, for backends that are not TensorRT.

``{"schema_version": 1, "tuner_version": "...", "knobs": [{"name", "values", "default", "help",
"source", "is_open", "opt_in", "idle"}, ...]}``; the last five may be left out.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, cast

from smart_tuner.knobs.check import MAX_KNOBS, check_knobs, refuse
from smart_tuner.knobs.database import KnobDatabase
from smart_tuner.knobs.knob import Knob
from smart_tuner.knobs.text import clean_sentence, shown

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEMA_VERSION = 1

_PROSE = ("help", "source", "opt_in", "idle")
_FIELDS = ("name", "values", "default", "is_open", *_PROSE)


def read_own_form(data: Mapping[str, object]) -> KnobDatabase:
    """Read the parsed JSON of our form.

    Raises:
        UserInputError: Another schema version, a missing, unknown or ill-typed field, no knobs,
            too many, or a knob that breaks a rule of ``check_knobs``.
    """
    version = data.get("schema_version")
    if type(version) is not int or not 1 <= version <= SCHEMA_VERSION:
        refuse("schema_version", f"this version of smart-tuner reads 1 to {SCHEMA_VERSION}")
    items = data.get("knobs")
    if not isinstance(items, list) or not items:
        refuse("knobs", "it is missing, no list, or empty")
    if len(items) > MAX_KNOBS:
        refuse("knobs", f"more than {MAX_KNOBS} knobs")
    knobs = [_knob(f"knobs[{index}]", item) for index, item in enumerate(items)]
    check_knobs(knobs)
    tuner_version = clean_sentence(_text("tuner_version", data.get("tuner_version")))
    return KnobDatabase(tuple(knob for _, knob in knobs), tuner_version)


def write_own_form(database: KnobDatabase) -> str:
    """Write a database so that reading it gives an equal one.

    Prose (help, source, reasons) comes back on one line with control characters replaced.
    """
    data = {
        "schema_version": SCHEMA_VERSION,
        "tuner_version": database.tuner_version,
        "knobs": [asdict(knob) for knob in database],
    }
    return json.dumps(data, indent=1) + "\n"


def _knob(place: str, item: object) -> tuple[str, Knob]:
    if not isinstance(item, dict):
        refuse(place, "it is no object")
    fields = cast("dict[str, object]", item)
    unknown = [key for key in fields if key not in _FIELDS]
    if unknown:
        refuse(place, f"unknown field '{shown(unknown[0])}'")
    name = _text(f"{place}, name", fields.get("name"))
    place = f"{place} ({shown(name)})"
    is_open = fields.get("is_open", False)
    if not isinstance(is_open, bool):
        refuse(f"{place}, is_open", "it is neither true nor false")
    prose = {key: clean_sentence(_text(f"{place}, {key}", fields.get(key, ""))) for key in _PROSE}
    knob = Knob(
        name=name,
        values=_values(f"{place}, values", fields.get("values")),
        default=_text(f"{place}, default", fields.get("default")),
        is_open=is_open,
        **prose,
    )
    return place, knob


def _values(place: str, values: object) -> tuple[str, ...]:
    if not isinstance(values, list):
        refuse(place, "it is missing or no list")
    return tuple(_text(place, value) for value in values)


def _text(place: str, value: object) -> str:
    """The value itself: ``1``, ``1.0`` and ``true`` would collapse into one choice later."""
    if not isinstance(value, str):
        refuse(place, 'it is missing or no text; write numbers and booleans as text, "1"')
    return value
