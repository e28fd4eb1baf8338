"""TensorRT's own list of knobs: the text that ``IBuilderConfig.all_build_routes`` returns.

``{"tuner_version": "2.19.45", "tuner_options": [{"option", "allowed_values", "default_value",
"help"}, ...]}``; the option has a leading dash, and the allowed values repeat it:
``-x=[on|off]``, or for an open knob ``-x=int``, ``-x=int32_t``, ``-x=[1|2|...]``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from smart_tuner.knobs.check import MAX_KNOBS, check_knobs, refuse
from smart_tuner.knobs.database import KnobDatabase
from smart_tuner.knobs.knob import Knob
from smart_tuner.knobs.opt_in import opt_in_reason
from smart_tuner.knobs.text import MAX_NAME_CHARACTERS, clean_sentence, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SOURCE = "build route"


def read_tensorrt_form(data: Mapping[str, object]) -> KnobDatabase:
    """Read the parsed JSON of TensorRT's form.

    As in trtexec, entries that are no objects or have no ``option`` are skipped and a missing
    version is ``unknown``. Unlike there, a knob that is listed twice is refused.

    Raises:
        UserInputError: No knobs, too many, or a knob that breaks a rule of ``check_knobs``.
    """
    options = data.get("tuner_options")
    if not isinstance(options, list):
        refuse("tuner_options", "it is missing or no list")
    if len(options) > MAX_KNOBS:
        refuse("tuner_options", f"more than {MAX_KNOBS} knobs")
    knobs = list(_knobs(options))
    if not knobs:
        refuse("tuner_options", "it holds no knobs")
    check_knobs(knobs)
    version = data.get("tuner_version")
    text = clean_sentence(version)[:MAX_NAME_CHARACTERS] if isinstance(version, str) else ""
    return KnobDatabase(tuple(knob for _, knob in knobs), text or "unknown")


def _knobs(options: list[object]) -> Iterator[tuple[str, Knob]]:
    for index, item in enumerate(options):
        if isinstance(item, dict) and item.get("option"):
            yield _knob(f"tuner_options[{index}]", cast("dict[str, object]", item))


def _knob(place: str, item: Mapping[str, object]) -> tuple[str, Knob]:
    option = _text(place, item, "option").strip()
    place = f"{place} ({shown(option)})"
    name = option.removeprefix("-")
    values = _listed_values(_text(place, item, "allowed_values"))
    help_text = clean_sentence(_text(place, item, "help"))
    knob = Knob(
        name=name,
        values=values,
        default=_text(place, item, "default_value").strip(),
        help=help_text,
        source=SOURCE,
        is_open=not values,
        opt_in=opt_in_reason(name, help_text),
    )
    return place, knob


def _text(place: str, item: Mapping[str, object], key: str) -> str:
    value = item.get(key, "")
    if not isinstance(value, str):
        refuse(place, f"{key} is no text")
    return value


def _listed_values(allowed: str) -> tuple[str, ...]:
    """Values between the brackets; none when the list is open or there is no list."""
    before, opening, rest = allowed.partition("[")
    inner, closing, _ = rest.partition("]")
    if not opening or not closing or "]" in before or "..." in inner:
        return ()
    return tuple(value.strip() for value in inner.split("|") if value.strip())
