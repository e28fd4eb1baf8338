"""Samplers that can be compared: those of the product, installed ones, and rivals kept for this."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any

from optuna.samplers import BaseSampler
from typing_extensions import override

from smart_tuner.bench.rivals.registry import make_rival, rival_names
from smart_tuner.errors import UserInputError
from smart_tuner.samplers.registry import make_sampler, sampler_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import optuna
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial, TrialState

    from smart_tuner.samplers.route_sampler.beliefs import Beliefs


def contestant_names() -> tuple[str, ...]:
    """Every name that ``make_contestant`` takes, sorted."""
    return tuple(sorted({*sampler_names(), *rival_names()}))


def check_contestants(names: Sequence[str]) -> None:
    """Refuse unknown names before anything runs.

    Raises:
        UserInputError: No name at all, or one that no sampler has.
    """
    if not names:
        msg = "Name at least one sampler."
        raise UserInputError(msg)
    unknown = [name for name in names if name not in contestant_names()]
    if unknown:
        msg = f"No sampler {unknown[0]!r}; there are {', '.join(contestant_names())}."
        raise UserInputError(msg)


def make_contestant(
    name: str,
    choices: Mapping[str, tuple[str, ...]],
    seed: int,
    beliefs: Beliefs | None = None,
) -> BaseSampler:
    """Make a sampler by name.

    Args:
        name: One of ``contestant_names()``.
        choices: Choices by knob name, the default first.
        seed: Of the sampler.
        beliefs: What it holds already, if it can begin from that.

    Raises:
        UserInputError: No such sampler, or it cannot begin from beliefs.
        EnvironmentNotFit: A rival's package is missing.
    """
    if name in rival_names():
        return make_rival(name, choices, seed)
    defaults = {knob: values[0] for knob, values in choices.items()}
    if beliefs is None:
        return make_sampler(name, choices, defaults, seed)
    return make_sampler(name, choices, defaults, seed, beliefs)


class Stopwatch(BaseSampler):
    """Passes every call to a sampler and adds up the time that it takes.

    Attributes:
        seconds: Time spent in the sampler so far.
    """

    def __init__(self, sampler: BaseSampler) -> None:
        self.seconds = 0.0
        self._sampler = sampler

    @contextlib.contextmanager
    def _timed(self) -> Iterator[None]:
        started = time.perf_counter_ns()
        try:
            yield
        finally:
            self.seconds += (time.perf_counter_ns() - started) / 1e9

    @override
    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        with self._timed():
            return self._sampler.infer_relative_search_space(study, trial)

    @override
    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        with self._timed():
            return self._sampler.sample_relative(study, trial, search_space)

    @override
    def sample_independent(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        with self._timed():
            return self._sampler.sample_independent(study, trial, param_name, param_distribution)

    @override
    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        with self._timed():
            self._sampler.before_trial(study, trial)

    @override
    def after_trial(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        state: TrialState,
        values: Sequence[float] | None,
    ) -> None:
        with self._timed():
            self._sampler.after_trial(study, trial, state, values)
