"""Random routes near the default: the bar that any search has to clear."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from smart_tuner.samplers.evolution import mutate
from smart_tuner.samplers.route_sampler.proposer import Proposal, RouteProposer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_tuner.samplers.route_sampler.proposer import Request

    Choices = Mapping[str, tuple[str, ...]]


class FlipSampler(RouteProposer):
    """The default with a fixed number of knobs, drawn at random, set to another value."""

    def __init__(self, choices: Choices, flips: int, seed: int) -> None:
        super().__init__(choices, {name: values[0] for name, values in choices.items()}, seed)
        self._flips = flips

    @override
    def propose(self, request: Request) -> Proposal:
        route = mutate(self.space, self.space.default, self._flips, request.generator)
        return Proposal(route, "random")


def three_flips(choices: Choices, seed: int) -> FlipSampler:
    """Three flips: few routes break."""
    return FlipSampler(choices, 3, seed)


def eight_flips(choices: Choices, seed: int) -> FlipSampler:
    """Eight flips: each trial sees more values, and a third of the trials break."""
    return FlipSampler(choices, 8, seed)
