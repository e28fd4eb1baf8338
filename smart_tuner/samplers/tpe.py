"""Optuna's multivariate TPE, started around the default instead of uniformly."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

import optuna
from optuna.samplers import TPESampler
from optuna.trial import TrialState
from typing_extensions import override

from smart_tuner.samplers.evolution import mutate
from smart_tuner.samplers.route_sampler.proposer import Proposal, RouteProposer

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

    from smart_tuner.samplers.route_sampler.proposer import Request
    from smart_tuner.samplers.route_sampler.space import RouteSpace

LEARNT = (TrialState.COMPLETE, TrialState.PRUNED)
STARTUP_TRIALS = 20
STARTUP_FLIPS = 3


class DefaultCentredTpeSampler(RouteProposer):
    """Twenty routes of three flips around the default, then multivariate TPE.

    Optuna's sampler reads constraints itself and counts running trials as slow (constant liar). A
    new one is made at every ask, so that nothing is carried over. Where it repeats a known route,
    the nearest unknown one is taken.
    """

    @override
    def propose(self, request: Request) -> Proposal:
        if len(request.view.known) <= STARTUP_TRIALS:
            route = mutate(self.space, self.space.default, STARTUP_FLIPS, request.generator)
            return Proposal(route, "start around the default")
        values = self._ask_tpe(request)
        return Proposal(self.space.encode(values) or self.space.default, "tpe")

    def _ask_tpe(self, request: Request) -> dict[str, Any]:
        seed = zlib.crc32(f"{self.seed} {request.trial.number}".encode())
        study, readable = request.study, readable_trials(request.study, self.space)
        is_foreign = len(readable) < len(study.get_trials(deepcopy=False, states=LEARNT))
        if is_foreign:
            study = optuna.create_study(storage=optuna.storages.InMemoryStorage())
            study.add_trials(readable)
        # A scratch study does not have this trial, to which the constant liar writes.
        sampler = TPESampler(
            n_startup_trials=0, multivariate=True, constant_liar=not is_foreign, seed=seed
        )
        space: dict[str, BaseDistribution] = dict(self.space.distributions)
        return sampler.sample_relative(study, request.trial, space)


def readable_trials(study: optuna.Study, space: RouteSpace) -> list[FrozenTrial]:
    """Finished trials whose values are all choices of this space."""
    trials = study.get_trials(deepcopy=False, states=LEARNT)
    return [trial for trial in trials if space.encode(trial.params) is not None]
