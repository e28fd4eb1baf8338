"""What all our samplers share: pure proposals, the baseline first, no route twice."""

from __future__ import annotations

import zlib
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from optuna.samplers import BaseSampler, RandomSampler
from typing_extensions import override

from smart_tuner.errors import SearchExhausted
from smart_tuner.samplers.route_sampler.history import TrialReader
from smart_tuner.samplers.route_sampler.keys import PROPOSAL
from smart_tuner.samplers.route_sampler.space import RouteSpace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import optuna
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

    from smart_tuner.samplers.route_sampler.history import TrialView
    from smart_tuner.samplers.route_sampler.space import Choice, Route

SEED_RANGE = 2**63


@dataclass(frozen=True, slots=True)
class Request:
    """What a proposal may depend on.

    Attributes:
        study: The study.
        trial: The trial to propose for.
        view: Finished and pending trials.
        generator: Random stream of this trial, keyed by (seed, trial number).
    """

    study: optuna.Study
    trial: FrozenTrial
    view: TrialView
    generator: np.random.Generator


@dataclass(frozen=True, slots=True)
class Proposal:
    """A route and why it is proposed (``screening``, ``exploring``, ``exploiting`` ...)."""

    route: Route
    reason: str


class RouteProposer(BaseSampler):
    """Base of the samplers that propose whole routes.

    A proposal is a pure function of the study's finished and pending trials, the seed and the
    trial number: nothing is kept between asks, so a restart changes nothing and workers need no
    coordination but the study. The default route comes first. A route that is known (finished,
    running or queued) is replaced by the nearest one that is not.

    Args:
        choices: Choices by knob name, at least one each.
        defaults: One of the choices by knob name.
        seed: Any whole number.

    Raises:
        UserInputError: The space is malformed.
    """

    def __init__(
        self, choices: Mapping[str, Sequence[Choice]], defaults: Mapping[str, Choice], seed: int
    ) -> None:
        self.space = RouteSpace.of(choices, defaults)
        self.seed = seed % SEED_RANGE
        self._reader = TrialReader(self.space)
        self._distributions = self.space.distributions

    @abstractmethod
    def propose(self, request: Request) -> Proposal:
        """Propose a route; the default route is known by now, and some route is not.

        Raises:
            SearchExhausted: This sampler has nothing more to propose.
        """

    @override
    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        return dict(self._distributions)

    @override
    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        self._raise_error_if_multi_objective(study)
        view = self._reader.read(study, trial.number)
        generator = np.random.default_rng((self.seed, trial.number))
        proposal = self._next(Request(study, trial, view, generator))
        self._publish(study, trial, proposal)
        values = self.space.decode(proposal.route)
        return {
            name: values[name]
            if name in values
            else self.sample_independent(study, trial, name, distribution)
            for name, distribution in search_space.items()
        }

    @override
    def sample_independent(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """Draw a parameter that is not in our space, from its own random stream."""
        self._raise_error_if_multi_objective(study)
        key = zlib.crc32(f"{self.seed} {trial.number} {param_name}".encode("utf-8", "replace"))
        return RandomSampler(seed=key).sample_independent(
            study, trial, param_name, param_distribution
        )

    def _next(self, request: Request) -> Proposal:
        known, default = request.view.known, self.space.default
        if default not in known:
            return Proposal(default, "baseline")
        if len(known) >= self.space.size:
            msg = f"All {self.space.size} routes of this space are known; nothing is left to try."
            raise SearchExhausted(msg)
        proposal = self.propose(request)
        if proposal.route not in known:
            return proposal
        nearest = self.space.around(proposal.route, request.generator)
        route = next(route for route in nearest if route not in known)
        return Proposal(route, f"{proposal.reason}, next to a known route")

    def _publish(self, study: optuna.Study, trial: FrozenTrial, proposal: Proposal) -> None:
        """Let other workers see the whole proposal, long before its last parameter is set."""
        content: dict[str, Any] = {
            "route": self.space.changes(proposal.route),
            "reason": proposal.reason,
        }
        storage = study._storage  # noqa: SLF001 - as Optuna's own samplers do
        storage.set_trial_system_attr(trial._trial_id, PROPOSAL, content)  # noqa: SLF001
