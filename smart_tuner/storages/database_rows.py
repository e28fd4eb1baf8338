"""Trials in Optuna's tables, read and written many rows at a time.

Optuna's own statements ask for the past of each parameter before they write it, one round trip
after the other, and read through an object a row. The tables are Optuna's and stay readable by
everything that reads them.
"""

from __future__ import annotations

import json
from collections import defaultdict
from datetime import datetime, timezone
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from optuna import distributions
from optuna.storages._rdb import models
from optuna.trial import FrozenTrial
from sqlalchemy import select, text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from optuna.distributions import BaseDistribution
    from sqlalchemy import ColumnElement, Connection, RowMapping

    from smart_tuner.storages.overlay import Change

AT_A_TIME = 200
"""Trials that are read at a time, to bound memory: at 250 knobs fifty thousand rows."""

TRIALS = models.TrialModel.__table__
VALUES = models.TrialValueModel.__table__
PARAMS = models.TrialParamModel.__table__
STEPS = models.TrialIntermediateValueModel.__table__
USER = models.TrialUserAttributeModel.__table__
SYSTEM = models.TrialSystemAttributeModel.__table__

_to_distribution = lru_cache(maxsize=4096)(distributions.json_to_distribution)
"""A study has as many distributions as knobs, and each row repeats one."""

_to_text = lru_cache(maxsize=4096)(distributions.distribution_to_json)


def read_trials(connection: Connection, *conditions: ColumnElement[bool]) -> list[FrozenTrial]:
    """Read the trials that fulfil conditions on the table of trials, by id."""
    rows = connection.execute(select(TRIALS).where(*conditions).order_by(TRIALS.c.trial_id))
    found = rows.mappings().all()
    trials: list[FrozenTrial] = []
    for start in range(0, len(found), AT_A_TIME):
        trials.extend(_whole(connection, found[start : start + AT_A_TIME]))
    return trials


def next_trial_id(connection: Connection) -> int:
    """Reserve the id of a trial that is about to be written."""
    statement = text("SELECT nextval(pg_get_serial_sequence('trials', 'trial_id'))")
    return int(connection.execute(statement).scalar_one())


def write_change(connection: Connection, study_id: int, change: Change) -> None:
    """Write one trial, in a number of statements that does not depend on the number of knobs."""
    trial = change.trial
    trial_id = trial._trial_id  # noqa: SLF001
    state = {
        "state": trial.state,
        "datetime_start": _utc(trial.datetime_start),
        "datetime_complete": _utc(trial.datetime_complete),
    }
    if change.is_new:
        row = {"trial_id": trial_id, "number": trial.number, "study_id": study_id, **state}
        connection.execute(TRIALS.insert().values(row))
    elif change.is_state_new:
        connection.execute(TRIALS.update().where(TRIALS.c.trial_id == trial_id).values(state))
    if change.is_state_new:
        _write_values(connection, trial_id, trial.values or ())
    _write_params(connection, trial_id, change)
    _write_attributes(connection, USER.name, trial_id, _picked(trial.user_attrs, change.user))
    _write_attributes(
        connection, SYSTEM.name, trial_id, _picked(trial.system_attrs, change.system)
    )


def _picked(attributes: Mapping[str, Any], keys: set[str]) -> dict[str, Any]:
    return {key: value for key, value in attributes.items() if key in keys}


def _write_params(connection: Connection, trial_id: int, change: Change) -> None:
    if not change.params:
        return
    statement = text(
        "INSERT INTO trial_params (trial_id, param_name, param_value, distribution_json) "
        "SELECT :trial_id, * FROM unnest("
        "CAST(:names AS text[]), CAST(:figures AS float8[]), CAST(:kinds AS text[]))"
    )
    kinds = [_to_text(change.trial.distributions[name]) for name in change.params]
    rows = {"names": [*change.params], "figures": [*change.params.values()], "kinds": kinds}
    connection.execute(statement, {"trial_id": trial_id, **rows})


def _write_attributes(
    connection: Connection, table: str, trial_id: int, attributes: Mapping[str, Any]
) -> None:
    if not attributes:
        return
    statement = text(
        f"INSERT INTO {table} (trial_id, key, value_json) "  # noqa: S608, a name of our own
        "SELECT :trial_id, * FROM unnest(CAST(:keys AS text[]), CAST(:texts AS text[])) "
        "ON CONFLICT (trial_id, key) DO UPDATE SET value_json = EXCLUDED.value_json"
    )
    texts = [json.dumps(value) for value in attributes.values()]
    connection.execute(statement, {"trial_id": trial_id, "keys": [*attributes], "texts": texts})


def _write_values(connection: Connection, trial_id: int, values: Sequence[float]) -> None:
    for objective, value in enumerate(values):
        stored, kind = models.TrialValueModel.value_to_stored_repr(value)
        row = {"trial_id": trial_id, "objective": objective, "value": stored, "value_type": kind}
        connection.execute(VALUES.insert().values(row))


def _whole(connection: Connection, found: Sequence[RowMapping]) -> Iterator[FrozenTrial]:
    """Add parameters, values and attributes to rows of the table of trials."""
    ids = [row["trial_id"] for row in found]
    params: dict[int, dict[str, tuple[BaseDistribution, float]]] = defaultdict(dict)
    columns = (PARAMS.c.trial_id, PARAMS.c.param_name, PARAMS.c.param_value)
    wanted = select(*columns, PARAMS.c.distribution_json).where(PARAMS.c.trial_id.in_(ids))
    for trial_id, name, figure, kind in connection.execute(wanted.order_by(PARAMS.c.param_id)):
        params[trial_id][name] = (_to_distribution(kind), figure)
    values, steps = _values(connection, ids), _steps(connection, ids)
    attributes = [_attributes(connection, table, ids) for table in (USER, SYSTEM)]
    for row in found:
        mine = params[row["trial_id"]]
        yield FrozenTrial(
            number=row["number"],
            state=row["state"],
            value=None,
            values=values.get(row["trial_id"]),
            datetime_start=_local(row["datetime_start"]),
            datetime_complete=_local(row["datetime_complete"]),
            params={name: kind.to_external_repr(figure) for name, (kind, figure) in mine.items()},
            distributions={name: kind for name, (kind, _) in mine.items()},
            user_attrs=attributes[0][row["trial_id"]],
            system_attrs=attributes[1][row["trial_id"]],
            intermediate_values=steps[row["trial_id"]],
            trial_id=row["trial_id"],
        )


def _values(connection: Connection, ids: list[int]) -> dict[int, list[float]]:
    found: dict[int, list[float]] = defaultdict(list)
    wanted = select(VALUES).where(VALUES.c.trial_id.in_(ids)).order_by(VALUES.c.objective)
    for row in connection.execute(wanted).mappings():
        figure = models.TrialValueModel.stored_repr_to_value(row["value"], row["value_type"])
        found[row["trial_id"]].append(figure)
    return found


def _steps(connection: Connection, ids: list[int]) -> dict[int, dict[int, float]]:
    """Intermediate values, which no study of ours has."""
    found: dict[int, dict[int, float]] = defaultdict(dict)
    wanted = select(STEPS).where(STEPS.c.trial_id.in_(ids))
    for row in connection.execute(wanted).mappings():
        stored = (row["intermediate_value"], row["intermediate_value_type"])
        figure = models.TrialIntermediateValueModel.stored_repr_to_intermediate_value(*stored)
        found[row["trial_id"]][row["step"]] = figure
    return found


def _attributes(connection: Connection, table: Any, ids: list[int]) -> dict[int, dict[str, Any]]:
    found: dict[int, dict[str, Any]] = defaultdict(dict)
    wanted = select(table.c.trial_id, table.c.key, table.c.value_json)
    for trial_id, key, value in connection.execute(wanted.where(table.c.trial_id.in_(ids))):
        found[trial_id][key] = json.loads(value)
    return found


def _utc(moment: datetime | None) -> datetime | None:
    """Local time as the tables keep it."""
    return moment and moment.astimezone(timezone.utc).replace(tzinfo=None)


def _local(moment: datetime | None) -> datetime | None:
    return moment and moment.replace(tzinfo=timezone.utc).astimezone().replace(tzinfo=None)
