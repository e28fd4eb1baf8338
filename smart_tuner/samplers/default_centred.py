"""The default sampler: few flips around the best route so far, learning sparse effects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from typing_extensions import override

from smart_tuner.samplers.blame import blame, unexplained
from smart_tuner.samplers.effects import fit_effects
from smart_tuner.samplers.route_proposer import Proposal, RouteProposer
from smart_tuner.samplers.route_space import replace

if TYPE_CHECKING:
    import numpy.typing as npt

    from smart_tuner.samplers.effects import Effects
    from smart_tuner.samplers.route_proposer import Request
    from smart_tuner.samplers.route_space import Route, RouteSpace
    from smart_tuner.samplers.trial_view import TrialView

    Figures = npt.NDArray[np.float64]

MIN_FLIPS, MAX_FLIPS = 2, 4
RISK_COST = 0.1
"""What a broken trial costs, in log latency, when changes are ranked."""

SUSPECT = 0.2
"""A value that breaks routes with a higher probability is screened last."""

LAST = 1e6
"""More tries than any value has: sorts it to the end."""

DRAWS = 4
"""How many proposals are drawn before one with a combination known to fail is let through."""


class DefaultCentredSampler(RouteProposer):
    """Starts at the default and flips few values at a time.

    Every third trial screens: two to four values that were tried least, so that each value is
    covered about equally often. The others exploit: they change the incumbent where one draw of
    the effects says that it pays (Thompson sampling), or, every sixth, where the mean effects do
    and at one random place (local move). Values that probably crash or break epsilon count as
    slow; values that left the engine unchanged count as without effect.
    """

    @override
    def propose(self, request: Request) -> Proposal:
        beliefs = _believe(self.space, request.view)
        proposals = (_draw(beliefs, request) for _ in range(DRAWS))
        first = next(proposals)
        if not beliefs.broken.size:
            return first
        sound = (p for p in (first, *proposals) if not self._holds(p.route, beliefs.broken))
        return next(sound, first)

    def _holds(self, route: Route, combinations: npt.NDArray[np.bool_]) -> bool:
        """Whether a route holds one of some combinations of values."""
        flags = self.space.flags([route])[0]
        return bool((flags | ~combinations).all(axis=1).any())


@dataclass(frozen=True, slots=True)
class _Beliefs:
    """What the trials say.

    Attributes:
        alternatives: (knob, choice) of each value that is no default.
        default: The default route.
        incumbent: The best route so far.
        effects: On log latency.
        risk: Probability that a value breaks a route.
        idle: Whether a value was part of a route that left the engine unchanged.
        tries: How often each value was tried or is being tried.
        broken: Combinations of values that failed although no value of theirs is at fault.
    """

    alternatives: tuple[tuple[int, int], ...]
    default: Route
    incumbent: Route
    effects: Effects
    risk: Figures
    idle: npt.NDArray[np.bool_]
    tries: Figures
    broken: npt.NDArray[np.bool_]


def _draw(beliefs: _Beliefs, request: Request) -> Proposal:
    turn = request.trial.number % 6
    flips = int(request.generator.integers(MIN_FLIPS, MAX_FLIPS + 1))
    if turn in (1, 4):
        return _screen(beliefs, request.generator, flips)
    if turn == 3:
        return _local_move(beliefs, request.generator)
    return _exploit(beliefs, request.generator, flips)


def _believe(space: RouteSpace, view: TrialView) -> _Beliefs:
    flags = space.flags(view.routes)
    log_ratio = view.log_ratio(space.default)
    measured = np.isfinite(log_ratio) & ~view.unchanged
    idle = np.asarray(flags[view.unchanged].any(axis=0))
    effects = fit_effects(flags[measured] & ~idle, log_ratio[measured])
    crash = blame(flags[view.failed], flags[~view.failed])
    violation = blame(flags[view.violated], flags[~view.failed & ~view.violated])
    pending = space.flags(view.pending)
    return _Beliefs(
        alternatives=space.alternatives,
        default=space.default,
        incumbent=view.incumbent(space.default),
        effects=effects,
        risk=1 - (1 - crash) * (1 - violation),
        idle=idle,
        tries=flags.sum(axis=0) + pending.sum(axis=0),
        broken=unexplained(flags[view.failed], crash),
    )


def _screen(beliefs: _Beliefs, generator: np.random.Generator, flips: int) -> Proposal:
    """Add the values that were tried least, those under suspicion or without effect last."""
    late = LAST * (beliefs.risk > SUSPECT) + LAST * beliefs.idle
    order = np.argsort(beliefs.tries + late + generator.random(beliefs.tries.size))
    changes: dict[int, int] = {}
    for column in order:
        knob, choice = beliefs.alternatives[column]
        if choice != beliefs.incumbent[knob]:
            changes.setdefault(knob, choice)
        if len(changes) == flips:
            break
    return Proposal(replace(beliefs.incumbent, changes), "screening")


def _exploit(beliefs: _Beliefs, generator: np.random.Generator, flips: int) -> Proposal:
    """Make the changes that pay most under one draw of the effects."""
    changes = _best_changes(beliefs, beliefs.effects.sample(generator), flips)
    return Proposal(replace(beliefs.incumbent, changes), "exploiting")


def _local_move(beliefs: _Beliefs, generator: np.random.Generator) -> Proposal:
    """Make the change that pays most on average, and one at random."""
    changes = _best_changes(beliefs, beliefs.effects.mean, flips=1)
    knob, choice = beliefs.alternatives[int(generator.integers(len(beliefs.alternatives)))]
    return Proposal(replace(beliefs.incumbent, {knob: choice, **changes}), "local move")


def _best_changes(beliefs: _Beliefs, effects: Figures, flips: int) -> dict[int, int]:
    """Up to ``flips`` changes of the incumbent that make it faster, best first, by knob."""
    cost = np.where(beliefs.idle, 0.0, effects) + RISK_COST * beliefs.risk
    present = {
        knob: float(figure)
        for (knob, choice), figure in zip(beliefs.alternatives, cost, strict=True)
        if beliefs.incumbent[knob] == choice
    }
    moves = [(-figure, knob, beliefs.default[knob]) for knob, figure in present.items()]
    moves += [
        (float(figure) - present.get(knob, 0.0), knob, choice)
        for (knob, choice), figure in zip(beliefs.alternatives, cost, strict=True)
        if beliefs.incumbent[knob] != choice
    ]
    changes: dict[int, int] = {}
    for gain, knob, choice in sorted(moves):
        if gain >= 0 or len(changes) == flips:
            break
        changes.setdefault(knob, choice)
    return changes
