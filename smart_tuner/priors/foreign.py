"""Evidence from elsewhere: trtexec's tuning caches, and any Optuna study over categorical knobs.

Neither was measured by this product. A cache holds one mean over one run of each route; of an
Optuna study nobody knows how its figures came about. So both are believed less (see ``source`` of
:class:`smart_tuner.priors.document.StudyEntry`) and neither is ever taken for a result.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import optuna
from optuna.distributions import CategoricalDistribution
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.study import StudyDirection
from optuna.trial import TrialState

from smart_tuner.errors import UserInputError
from smart_tuner.knobs.text import clean_sentence, shown
from smart_tuner.priors.build import study_id
from smart_tuner.priors.document import Baseline, Network, StudyEntry
from smart_tuner.priors.observed import Observation, ObservedStudy
from smart_tuner.storages.cached_trials import cached_trials
from smart_tuner.storages.tuning_cache import read_tuning_cache
from smart_tuner.storages.tuning_cache_row import TRTEXEC, CacheHeader
from smart_tuner.trial.trial import TrialOutcome

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from optuna.trial import FrozenTrial

PREFIX = "optuna:"
SINGLE_RUN = 0.02
"""Half of the interval that one mean of one build deserves: builds alone differ by 0.9 %."""

MAX_TRIALS = 20_000
FAILURES = frozenset(("built", "ran", "applied"))


def observe_cache(path: Path) -> ObservedStudy:
    """Read a tuning cache of trtexec or Torch-TensorRT.

    Raises:
        UserInputError: It cannot be read, or holds no time of its default route.
    """
    found = cached_trials(read_tuning_cache(path))
    header = found.cache.header or CacheHeader()
    baseline = found.baseline.latency_ms if found.baseline else None
    if not baseline:
        msg = (
            f"{clean_sentence(str(path))} holds no time of the default route, so no effect can be "
            "told from it."
        )
        raise UserInputError(msg)
    trials = tuple(
        Observation(
            values=trial.route.values,
            log_ratio=math.log(trial.latency_ms / baseline) if trial.latency_ms else None,
            failed=trial.outcome not in (TrialOutcome.FEASIBLE, TrialOutcome.INFEASIBLE),
            half_width=SINGLE_RUN,
            violation=_cache_violation(trial.row.loss, header, trial.outcome),
        )
        for trial in found.trials
    )
    name = clean_sentence(path.name)[:300]
    material = repr([(sorted(t.values.items()), t.log_ratio) for t in trials])
    entry = StudyEntry(
        id=study_id(name, material),
        name=name,
        source="trtexec" if header.origin == TRTEXEC else "torch-tensorrt",
        backend="tensorrt",
        tuner_version=clean_sentence(header.tuner_version)[:300],
        metric=header.metric,
        epsilon=repr(header.our_epsilon) if header.epsilon else "",
        objective="compute",
        baseline=Baseline(latency_ms=baseline),
        network=Network(name=clean_sentence(header.model.rsplit("/", 1)[-1])[:300]),
    )
    return ObservedStudy(entry, {knob.name: knob.choices for knob in found.database}, trials)


def observe_optuna(source: str) -> ObservedStudy:
    """Read an Optuna study: ``optuna:STORAGE#STUDY``.

    Its first finished trial counts as the default route: that is where effects are counted from.
    Parameters that are not categorical are left out. Values must be above zero.

    Args:
        source: ``STORAGE`` is a URL such as ``sqlite:///file.db``, or the path of a journal file.

    Raises:
        UserInputError: There is no such study, or nothing can be learnt from it.
    """
    storage, _, name = source.removeprefix(PREFIX).rpartition("#")
    if not (storage and name):
        msg = f"{shown(source)}: give optuna:STORAGE#STUDY, as optuna:sqlite:///runs.db#my-study."
        raise UserInputError(msg)
    study = _opened(storage, name)
    if len(study.directions) != 1:
        msg = f"The Optuna study {shown(name)} has several objectives; one is needed."
        raise UserInputError(msg)
    ended = [
        trial
        for trial in study.get_trials(deepcopy=False)
        if trial.state in (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL)
    ][:MAX_TRIALS]
    first = next((trial for trial in ended if _latency(trial)), None)
    choices = _choices(first) if first is not None else {}
    if first is None or not choices:
        msg = (
            f"The Optuna study {shown(name)} holds no finished trial with a value above zero and "
            "categorical parameters: nothing can be learnt from it."
        )
        raise UserInputError(msg)
    sign = -1 if study.direction is StudyDirection.MAXIMIZE else 1
    zero = math.log(_latency(first) or 1.0)
    trials = tuple(_optuna_trial(trial, choices, sign, zero) for trial in ended)
    label = clean_sentence(name)[:300]
    started = first.datetime_start
    entry = StudyEntry(
        id=study_id(label, repr([(sorted(t.values.items()), t.log_ratio) for t in trials])),
        name=label,
        created=started.date().isoformat() if started else "",
        source="optuna",
    )
    return ObservedStudy(entry, choices, trials)


def _opened(storage: str, name: str) -> optuna.Study:
    kept: Any = storage if "://" in storage else JournalStorage(JournalFileBackend(storage))
    try:
        return optuna.load_study(study_name=name, storage=kept)
    except KeyError:
        msg = f"{shown(storage)} holds no Optuna study {shown(name)}."
        raise UserInputError(msg) from None
    except Exception as error:  # noqa: BLE001  every database driver has errors of its own
        msg = f"Cannot read the Optuna storage {shown(storage)}: {shown(str(error))}."
        raise UserInputError(msg) from None


def _choices(first: FrozenTrial) -> dict[str, tuple[str, ...]]:
    """Choices as text, the first trial's value before the others."""
    found = {}
    for name, distribution in first.distributions.items():
        if isinstance(distribution, CategoricalDistribution):
            mine = str(first.params[name])
            others = [str(choice) for choice in distribution.choices if str(choice) != mine]
            found[name] = (mine, *dict.fromkeys(others))
    return found


def _optuna_trial(
    trial: FrozenTrial, choices: Mapping[str, tuple[str, ...]], sign: int, zero: float
) -> Observation:
    latency = _latency(trial)
    constraints = trial.constraints
    broken = any(constraints.get(key, 0.0) > 0 for key in FAILURES)
    others = [value for key, value in constraints.items() if key not in FAILURES]
    values = {
        name: str(value)
        for name, value in trial.params.items()
        if name in choices and str(value) != choices[name][0]
    }
    return Observation(
        values=values,
        log_ratio=sign * (math.log(latency) - zero) if latency else None,
        failed=latency is None or broken,
        violation=max(others) if others else None,
    )


def _latency(trial: FrozenTrial) -> float | None:
    if trial.state is not TrialState.COMPLETE or trial.value is None:
        return None
    return trial.value if math.isfinite(trial.value) and trial.value > 0 else None


def _cache_violation(
    loss: float | None, header: CacheHeader, outcome: TrialOutcome
) -> float | None:
    """log10(loss / epsilon), clipped as the search has it; ``None`` where nothing was checked."""
    if not header.epsilon:
        return None
    if outcome is TrialOutcome.INFEASIBLE and (loss is None or not math.isfinite(loss)):
        return 6.0
    if loss is None or not math.isfinite(loss):
        return None
    if loss == 0:
        return -6.0
    return min(6.0, max(-6.0, math.log10(loss / header.epsilon)))
