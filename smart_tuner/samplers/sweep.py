"""trtexec's searches ``fast`` and ``mixed``: sweeps that learn nothing.

Mended against trtexec 11.1: no route is tried twice, a resumed sweep goes on where it stopped,
``mixed`` takes only values that were faster *and* acceptable, and at most ten knobs, the cap that
trtexec declares and never applies.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

from typing_extensions import override

from smart_tuner.errors import SearchExhausted
from smart_tuner.samplers.route_sampler.proposer import Proposal, RouteProposer
from smart_tuner.samplers.route_sampler.space import replace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from smart_tuner.samplers.route_sampler.history import TrialView
    from smart_tuner.samplers.route_sampler.proposer import Request
    from smart_tuner.samplers.route_sampler.space import Route, RouteSpace

MAX_POSITIVE_KNOBS = 10


class FastSampler(RouteProposer):
    """One knob at a time: the default, then every other value of every knob, in order."""

    @override
    def propose(self, request: Request) -> Proposal:
        return Proposal(_first_unknown(single_flips(self.space), request.view), "sweep")


class MixedSampler(RouteProposer):
    """``fast``, then every combination of the values that were faster than the default."""

    @override
    def propose(self, request: Request) -> Proposal:
        routes = itertools.chain(single_flips(self.space), self._products(request.view))
        return Proposal(_first_unknown(routes, request.view), "sweep")

    def _products(self, view: TrialView) -> Iterator[Route]:
        """Combinations, the last knob fastest; read only once the single flips are known."""
        default = self.space.default
        positive = positive_values(self.space, view)
        options = [(default[knob], *choices) for knob, choices in positive.items()]
        for values in itertools.product(*options):
            yield replace(default, dict(zip(positive, values, strict=True)))


def single_flips(space: RouteSpace) -> Iterator[Route]:
    """The default route and every route with one other value, in trtexec's order."""
    yield space.default
    for knob, choice in space.alternatives:
        yield replace(space.default, {knob: choice})


def positive_values(space: RouteSpace, view: TrialView) -> Mapping[int, tuple[int, ...]]:
    """Choices, by knob, that alone were acceptable and faster than the default.

    Only the ten knobs with the fastest choice are kept, in the order of the space.
    """
    measured = zip(view.routes, view.log_ms, view.feasible, strict=True)
    latency = {route: float(log_ms) for route, log_ms, feasible in measured if feasible}
    baseline = latency.get(space.default, -math.inf)
    faster = {
        (knob, choice): latency[route]
        for knob, choice in space.alternatives
        if latency.get(route := replace(space.default, {knob: choice}), math.inf) < baseline
    }
    best: dict[int, float] = {}
    for (knob, _), log_ms in faster.items():
        best[knob] = min(log_ms, best.get(knob, math.inf))
    kept = sorted(sorted(best, key=lambda knob: best[knob])[:MAX_POSITIVE_KNOBS])
    return {knob: tuple(choice for k, choice in faster if k == knob) for knob in kept}


def _first_unknown(routes: Iterator[Route], view: TrialView) -> Route:
    for route in routes:
        if route not in view.known:
            return route
    msg = "The sweep is complete: every route of it is known; choose another sampler to go on."
    raise SearchExhausted(msg)
