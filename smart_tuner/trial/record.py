"""A trial as a JSON record, written so that a reader never sees half of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smart_tuner.errors import UserInputError
from smart_tuner.trial.fields import Fields, to_json
from smart_tuner.trial.read import (
    read_comparison,
    read_engine,
    read_limit_use,
    read_loss,
    read_route,
)
from smart_tuner.trial.trial import Trial, TrialOutcome

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from smart_tuner.validate.limits import LimitUse

SCHEMA_VERSION = 1

MODE = "one process per arm"
"""How baseline and candidate are measured; kept in each record."""


def trial_to_json(trial: Trial) -> dict[str, Any]:
    """Return a trial as plain JSON types; NaN and infinities become text."""
    return {"schema_version": SCHEMA_VERSION, "mode": MODE, **to_json(trial)}


def trial_from_json(data: object) -> Trial:
    """Read a trial back.

    Raises:
        UserInputError: The record is damaged, or a newer version wrote it; names the field.
    """
    fields = Fields(data, "trial record")
    version = fields.whole("schema_version")
    if version > SCHEMA_VERSION:
        msg = f"trial record: version {version} is newer than this program; update smart_tuner."
        raise UserInputError(msg)
    return Trial(
        route=fields.nested("route", read_route),
        outcome=fields.nested("outcome", _outcome),
        engine=fields.optional("engine", read_engine),
        losses=fields.each("losses", read_loss),
        comparisons=fields.each("comparisons", read_comparison),
        unchanged=fields.flag("unchanged"),
        is_alike=fields.later("is_alike", bool) or False,
        message=fields.text("message"),
        limits=fields.later("limits", _limits) or (),
        seconds=fields.number_map("seconds"),
        starts=fields.later("starts", _starts) or {},
    )


def remove_leftovers(folder: Path) -> None:
    """Delete what a process that was killed while writing left in a folder or below it."""
    for path in folder.rglob("*.partial"):
        path.unlink(missing_ok=True)


def _starts(data: object) -> Mapping[str, float]:
    return Fields({"starts": data}, "trial record").number_map("starts")


def _limits(data: object) -> tuple[LimitUse, ...]:
    return Fields({"limits": data}, "trial record").each("limits", read_limit_use)


def _outcome(data: object) -> TrialOutcome:
    try:
        return TrialOutcome(data)
    except ValueError as error:
        msg = f"trial record: unknown outcome {data!r}."
        raise UserInputError(msg) from error
