"""Trials as the released dashboard understands them."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.trial import FrozenTrial, TrialState

from smart_tuner.report.words import SHOWN_WORDS, percent
from smart_tuner.storages.history import FINISHED, kept_losses, outcome_key, record_of
from smart_tuner.storages.keys import REASON, ROUTE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from smart_tuner.storages.history import TrialRecord

CONSTRAINTS, CONSTRAINT_PREFIX = "constraints", "constraints:"
"""Where the released dashboard looks for constraints, and where Optuna 5 puts them."""

OUTCOME = "outcome"
TAKEN_OUT = (CONSTRAINT_PREFIX, "artifacts:")
"""Attributes that are given in another way; artifacts of a database lie where it keeps them."""

KNOBS = 4096
"""Distributions that are kept: about those of all studies that are looked at."""

QUEUED = "fixed_params"
"""What a trial was queued with; shown of those that wait, and else the parameters once more."""

DIGITS = 4
ENGINE_DIGITS = 12


def _same(found: BaseDistribution) -> BaseDistribution:
    """One object for all that are equal: those are told to be equal without looking inside."""
    if not isinstance(found, CategoricalDistribution):
        return found
    texts = tuple(choice for choice in found.choices if isinstance(choice, str))
    return _categorical(texts) if len(texts) == len(found.choices) else found


@lru_cache(KNOBS)
def _categorical(choices: tuple[str, ...]) -> CategoricalDistribution:
    return CategoricalDistribution(choices)


def shown_trial(
    trial: FrozenTrial, trial_id: int, baseline_ms: float | None, files: Mapping[str, str]
) -> FrozenTrial:
    """A trial with its constraints where the dashboard looks for them, and attributes for people.

    Optuna 5 keeps one system attribute a constraint; dashboards up to 0.21 read the older list
    and take a trial without one for feasible. Both together would count twice, so one goes.

    Args:
        trial: The trial as it is kept.
        trial_id: Its number among all trials that are shown.
        baseline_ms: The study's frozen baseline latency.
        files: System attributes that list the trial's files.
    """
    left_out = TAKEN_OUT if trial.state is TrialState.WAITING else (*TAKEN_OUT, QUEUED)
    kept = trial.system_attrs.items()
    system = {key: value for key, value in kept if not key.startswith(left_out)}
    system |= files
    if trial.constraints:
        system[CONSTRAINTS] = list(trial.constraints.values())
    return FrozenTrial(
        number=trial.number,
        state=trial.state,
        value=None,
        values=trial.values,
        datetime_start=trial.datetime_start,
        datetime_complete=trial.datetime_complete,
        params=trial.params,
        distributions={name: _same(found) for name, found in trial.distributions.items()},
        user_attrs=attributes_of(trial, baseline_ms),
        system_attrs=system,
        intermediate_values=trial.intermediate_values,
        trial_id=trial_id,
    )


def attributes_of(trial: FrozenTrial, baseline_ms: float | None) -> dict[str, Any]:
    """What the trial table has a column for, in the words of every other display."""
    kept = trial.user_attrs
    shown: dict[str, Any] = {"route": kept.get(ROUTE, ""), "why": kept.get(REASON, "")}
    if trial.state not in FINISHED:
        return shown
    record = record_of(trial)
    key = outcome_key(record)
    return {
        OUTCOME: SHOWN_WORDS.get(key, key),
        **_figures(record, baseline_ms),
        **shown,
        **({"engine": record.fingerprint[:ENGINE_DIGITS]} if record.fingerprint else {}),
        **({"message": record.message} if record.message else {}),
    }


def _figures(record: TrialRecord, baseline_ms: float | None) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    if baseline_ms and record.value_ms:
        figures["gain"] = round(baseline_ms / record.value_ms, DIGITS)
    if record.half_width is not None:
        figures["gain +-"] = percent(record.half_width)
    if (share := epsilon_share(record)) is not None:
        figures["loss / epsilon"] = float(f"{share:.3g}")
    if "total" in record.seconds:
        figures["seconds"] = round(record.seconds["total"], 2)
    return figures


def outcome_of(shown: FrozenTrial) -> str:
    """How a trial that is not feasible ended, in words; empty for all others.

    Args:
        shown: The trial as ``shown_trial`` made it.
    """
    if all(value <= 0 for value in shown.constraints.values()):
        return ""
    if shown.state is TrialState.COMPLETE:
        return "infeasible"
    return str(shown.user_attrs.get(OUTCOME, ""))


def epsilon_share(record: TrialRecord) -> float | None:
    """The worst loss as a share of its epsilon; ``None`` if there is no such number."""
    worst = next(iter(kept_losses(record)), None)
    if worst is None or not worst.epsilon > 0 or not math.isfinite(worst.loss):
        return None
    return worst.loss / worst.epsilon


def best_trial(trials: Iterable[FrozenTrial]) -> FrozenTrial | None:
    """The fastest feasible one of COMPLETE trials; the one nearest to feasible if none is.

    Optuna's storages ignore constraints here, so a fast violator would be shown as the best.
    """
    return min(trials, key=_rank, default=None)


def _rank(trial: FrozenTrial) -> tuple[float, float, int]:
    excess = math.fsum(max(0.0, value) for value in trial.constraints.values())
    return excess, _value(trial.values), trial.number


def _value(values: Iterable[float] | None) -> float:
    return next(iter(values or ()), math.inf)
