"""Uniform random routes: the baseline that comparisons need, and no way to tune."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from smart_tuner.samplers.route_sampler.proposer import Proposal, RouteProposer

if TYPE_CHECKING:
    from smart_tuner.samplers.route_sampler.proposer import Request


class UniformSampler(RouteProposer):
    """Draws every knob uniformly, as Optuna's ``RandomSampler`` does, after the default route.

    About half of all knobs end up away from their default, so that with 200 knobs and a dozen
    values that break, nearly every route fails.
    """

    @override
    def propose(self, request: Request) -> Proposal:
        sizes = [len(values) for values in self.space.choices]
        route = tuple(int(choice) for choice in request.generator.integers(sizes))
        return Proposal(route, "random")
