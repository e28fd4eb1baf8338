"""Creates trials, so that a trial in flight is in the journal whole, and only once.

What a trial costs at 250 knobs, by how it is written (uniformly random routes, 300 trials, local
disk, a busy two-core machine; "load" is the time to open the journal again):

* Optuna's ``ask`` and ``tell``, an append a parameter: 132 ms, 69 kB, load 1.3 s.
* ``add_trial`` with a whole running trial, then an append an attribute: 14 ms, 38 kB, load 0.4 s,
  but no sampler that writes to its trial (TPE, for one) can propose for it.
* As here, any sampler, one append for the new trial and one for its result: 20 ms (of which
  reading the past takes a third), 35 kB, load 0.5 s. The default sampler adds 10 ms.

The last also means that a kill leaves either no trial or one with all its parameters, and that
workers ask one after the other, each seeing the others' routes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import optuna
from optuna.trial import TrialState

from smart_tuner.errors import StudyMismatch
from smart_tuner.route.build_route import BuildRoute
from smart_tuner.storages.gathering import one_append, storage_of
from smart_tuner.storages.history import FINISHED
from smart_tuner.storages.keys import MESSAGE, PROPOSAL, REASON, RETRIES, ROUTE, WORKER

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MAX_RETRIES = 3
"""How often a route is tried again when the process ended while it was being tried."""


def ask_trial(study: optuna.Study, choices: Mapping[str, tuple[str, ...]]) -> optuna.Trial:
    """Take the next queued route, or let the sampler propose one.

    Args:
        study: The study.
        choices: Choices by knob name, the default first.

    Returns:
        A running trial with a value for every knob and the attributes ``route`` and ``reason``.

    Raises:
        StudyMismatch: The study was made with other choices.
        SmartTunerError: Whatever the sampler raises, ``SearchExhausted`` above all. The trial
            that was begun is closed as FAIL, which no sampler counts.
    """
    with one_append(study):
        return _ask(study, choices, "")


def ask_within(
    study: optuna.Study, choices: Mapping[str, tuple[str, ...]], limit: int | None, worker: str
) -> optuna.Trial | None:
    """As :func:`ask_trial`, unless the trials that ended and those in flight are enough already.

    Args:
        study: The study.
        choices: Choices by knob name, the default first.
        limit: Trials of the study in all; ``None`` for no limit.
        worker: Who asks, as the trial's attribute ``worker``; empty if nobody else can.

    Returns:
        ``None`` if there is no room for one more.
    """
    with one_append(study):
        counted = (*FINISHED, TrialState.RUNNING)
        if limit is not None and len(study.get_trials(deepcopy=False, states=counted)) >= limit:
            return None
        return _ask(study, choices, worker)


def enqueue(
    study: optuna.Study,
    values: Mapping[str, str],
    reason: str,
    choices: Mapping[str, tuple[str, ...]],
) -> tuple[str, ...]:
    """Queue a route; :func:`ask_trial` takes it before it asks the sampler.

    Args:
        study: The study.
        values: Value by knob name; knobs left out get their default.
        reason: Why, as the trial's ``reason``.
        choices: Choices by knob name, the default first.

    Returns:
        One line for each value that this space does not have and that was left out.
    """
    known = {name: value for name, value in values.items() if value in choices.get(name, ())}
    params = {name: known.get(name, options[0]) for name, options in choices.items()}
    study.enqueue_trial(params, user_attrs={REASON: reason})
    return tuple(
        f"-{name}={value} is not in this study's space; it was left out."
        for name, value in values.items()
        if name not in known
    )


def running_trials(study: optuna.Study) -> tuple[optuna.Trial, ...]:
    """The trials in flight, in order; after a kill these are the ones to tell or to close."""
    return tuple(
        reopen_trial(study, trial.number)
        for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
    )


def reopen_trial(study: optuna.Study, number: int) -> optuna.Trial:
    """A handle on a trial that some process began, by its number.

    Raises:
        KeyError: The study has no such trial.
    """
    storage = storage_of(study)
    study_id = storage.get_study_id_from_name(study.study_name)
    return optuna.Trial(study, storage.get_trial_id_from_study_id_trial_number(study_id, number))


def fail_stale(study: optuna.Study, lost: Iterable[int] | None = None) -> tuple[int, ...]:
    """Close trials in flight as FAIL and queue their routes again.

    Call it after results that were complete were told. A route is queued three times at most: one
    that takes the machine down must not do so for ever.

    Args:
        study: The study.
        lost: Numbers of trials whose worker is gone; by default all in flight, which is right
            only while no other process works in the study.

    Returns:
        The numbers of the closed trials: without those that somebody else closed meanwhile.
    """
    numbers = [trial.number for trial in running_trials(study)] if lost is None else [*lost]
    return tuple(number for number in numbers if _close(study, number))


def route_of(params: Mapping[str, str], choices: Mapping[str, tuple[str, ...]]) -> BuildRoute:
    """The route of a trial's parameters; parameters outside the choices are left out.

    Args:
        params: Value by knob name.
        choices: Choices by knob name, the default first.
    """
    known = {name: value for name, value in params.items() if name in choices}
    return BuildRoute.of(known, {name: values[0] for name, values in choices.items()})


def _ask(study: optuna.Study, choices: Mapping[str, tuple[str, ...]], worker: str) -> optuna.Trial:
    _check_space(study, choices)
    trial = study.ask()
    try:
        if "fixed_params" not in _system_attributes(trial):
            _ = trial.relative_params  # asks the sampler even when no knob has two values
        for name, values in choices.items():
            trial.suggest_categorical(name, values)
    except BaseException as error:
        trial.set_user_attr(MESSAGE, str(error)[:500] or type(error).__name__)
        study.tell(trial, state=TrialState.FAIL)
        raise
    trial.set_user_attr(ROUTE, str(route_of(trial.params, choices)))
    if worker:
        trial.set_user_attr(WORKER, worker)
    if REASON not in trial.user_attrs:
        trial.set_user_attr(REASON, _reason(trial))
    return trial


def _close(study: optuna.Study, number: int) -> bool:
    """Close a trial and queue its route again, unless it has ended by now."""
    with one_append(study):
        if study.get_trials(deepcopy=False)[number].state is not TrialState.RUNNING:
            return False
        trial = reopen_trial(study, number)
        trial.set_user_attr(MESSAGE, "the process ended while this route was tried")
        study.tell(number, state=TrialState.FAIL)
        _queue_again(study, trial)
        return True


def _queue_again(study: optuna.Study, trial: optuna.Trial) -> None:
    retries = int(trial.user_attrs.get(RETRIES, 0))
    params = dict(trial.params) or dict(_system_attributes(trial).get("fixed_params", {}))
    if not params or retries >= MAX_RETRIES:
        return
    reason = str(trial.user_attrs.get(REASON, ""))
    study.enqueue_trial(params, user_attrs={REASON: reason, RETRIES: retries + 1})


def _check_space(study: optuna.Study, choices: Mapping[str, tuple[str, ...]]) -> None:
    """Refuse changed choices before anything is written: Optuna would spoil the trial."""
    trials = study.get_trials(deepcopy=False)
    known = next((trial.distributions for trial in reversed(trials) if trial.distributions), {})
    changed = [
        name
        for name, values in choices.items()
        if name in known and getattr(known[name], "choices", ()) != tuple(values)
    ]
    if changed:
        msg = (
            f"The study was made with other values of {', '.join(sorted(changed)[:5])}; start a "
            "new study folder, or restore the version and options that it was made with."
        )
        raise StudyMismatch(msg)


def _reason(trial: optuna.Trial) -> str:
    published = _system_attributes(trial).get(PROPOSAL)
    if isinstance(published, dict):
        return str(published.get("reason", ""))
    return type(trial.study.sampler).__name__


def _system_attributes(trial: optuna.Trial) -> dict[str, Any]:
    return trial.study.get_trials(deepcopy=False)[trial.number].system_attrs
