"""(1+1) evolution from the default: mutate the incumbent, keep what is faster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from smart_tuner.samplers.route_sampler.proposer import Proposal, RouteProposer
from smart_tuner.samplers.route_sampler.space import replace

if TYPE_CHECKING:
    import numpy as np

    from smart_tuner.samplers.route_sampler.proposer import Request
    from smart_tuner.samplers.route_sampler.space import Route, RouteSpace


class EvolutionSampler(RouteProposer):
    """Changes each knob of the incumbent with probability 1/knobs, and at least one."""

    @override
    def propose(self, request: Request) -> Proposal:
        parent = request.view.incumbent(self.space.default)
        knobs = sum(len(values) > 1 for values in self.space.choices)
        count = max(1, int(request.generator.binomial(knobs, 1 / knobs)))
        return Proposal(mutate(self.space, parent, count, request.generator), "mutation")


def mutate(space: RouteSpace, route: Route, count: int, generator: np.random.Generator) -> Route:
    """Change ``count`` knobs, drawn at random, to another choice each; fewer if there are fewer.

    Knobs with one choice stay.
    """
    free = [knob for knob, values in enumerate(space.choices) if len(values) > 1]
    picked = generator.permutation(free)[:count]
    changes = {int(knob): _other(space, route, int(knob), generator) for knob in picked}
    return replace(route, changes)


def _other(space: RouteSpace, route: Route, knob: int, generator: np.random.Generator) -> int:
    others = [choice for choice in range(len(space.choices[knob])) if choice != route[knob]]
    return int(generator.choice(others))
