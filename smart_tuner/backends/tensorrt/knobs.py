"""The knob database of the installed SDK, with the knobs that are idle on one model."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from smart_tuner.backends.tensorrt.builder_settings import FLAGS
from smart_tuner.backends.tensorrt.survey import survey
from smart_tuner.knobs.database import KnobDatabase

if TYPE_CHECKING:
    from smart_tuner.backends.tensorrt.sdk import Sdk
    from smart_tuner.knobs.knob import Knob
    from smart_tuner.model.spec import ModelSpec

logger = logging.getLogger(__name__)


def knob_database(sdk: Sdk, model: ModelSpec | None = None) -> KnobDatabase:
    """All knobs: those of build routes first, then the builder's own settings.

    With a model, knobs that need an operator that it lacks are marked idle.

    Raises:
        EnvironmentNotFit: The SDK gives no configuration to ask, or dies when asked.
    """
    found = survey(sdk)
    for note in found.notes:
        _say_once(f"{sdk}: {note}")
    knobs = found.database.knobs
    if model is not None:
        knobs = tuple(replace(knob, idle=knob.idle or _idle(knob, model)) for knob in knobs)
    return KnobDatabase(knobs, found.database.tuner_version)


def _idle(knob: Knob, model: ModelSpec) -> str:
    kind, _, name = knob.name.partition(":")
    about = FLAGS.get(name.upper()) if kind == "flag" else None
    if about is None or not about.needs or model.operators.keys() & set(about.needs):
        return ""
    return f"no {' or '.join(about.needs)} in this model"


@lru_cache(maxsize=16)
def _say_once(text: str) -> None:
    logger.warning(text)
