"""The default sampler: learns what each value does and draws whole routes from what it learned."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from typing_extensions import override

from smart_tuner.samplers.route_sampler.allowances import learn_allowances
from smart_tuner.samplers.route_sampler.climb import Costs, climb, trim
from smart_tuner.samplers.route_sampler.cover import cover
from smart_tuner.samplers.route_sampler.crashes import Progress, learn_crashes
from smart_tuner.samplers.route_sampler.effects import STEEPEST, fit_effects, very_slow
from smart_tuner.samplers.route_sampler.proposer import Proposal, RouteProposer
from smart_tuner.samplers.route_sampler.trust import Held, trust_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt
    import optuna
    from optuna.distributions import BaseDistribution, CategoricalDistribution
    from optuna.trial import FrozenTrial

    from smart_tuner.samplers.route_sampler.allowances import Allowances
    from smart_tuner.samplers.route_sampler.beliefs import Beliefs
    from smart_tuner.samplers.route_sampler.crashes import Crashes
    from smart_tuner.samplers.route_sampler.effects import Effects
    from smart_tuner.samplers.route_sampler.history import TrialView
    from smart_tuner.samplers.route_sampler.proposer import Request
    from smart_tuner.samplers.route_sampler.space import Choice, Route

    Flags = npt.NDArray[np.bool_]

DRAWS = 6
"""How many routes are drawn before one that is known already is passed on."""

GOLDEN = 0.618
"""How far a draw goes from what is expected of each value differs from ask to ask, evenly between
not at all and a whole draw of the posterior: multiples of the golden ratio, without their integers."""

SURE = 0.3
"""Up to this spread an ask exploits, and who is behind a loss is not drawn."""

COVERING = 0.55
"""Share of the asks that let values meet, those with the widest draws, once all values were seen in
feasible routes; in proportion before."""

MAX_ROUTES = 3
"""How many routes of the beliefs are tried as they are: more would eat up a small budget."""

ENOUGH_TRUST = 0.5
"""Routes of the beliefs are tried while these are more likely right than wrong."""


class RouteSampler(RouteProposer):
    """Searches categorical parameters around their defaults.

    Every ask reads the study afresh. It learns sparse effects on log latency, which values and
    pairs of values break routes, and what values use up of accuracy or other constraints; draws
    one set of effects that agrees with the measurements (Thompson sampling); and changes the best
    route so far wherever the drawn gain outweighs the risk to break it. A route that takes half as
    long again as another one all of whose values it has counts as broken: one bad value is behind
    that, not a sum of small effects. Half of the asks then set knobs that seem not to matter so
    that values meet that never met. Values in routes that left the engine unchanged count as
    without effect. The proposal is a pure function of the study's finished and pending trials, the
    seed and the trial number.

    Args:
        space: Parameters by name. Trials tell values in a unit of time, above zero, the smaller
            the better; PRUNED is a failure. No two choices of one may be equal, as 1 and True are.
        defaults: One of the choices by name; the first trial.
        seed: Any whole number; ``None`` draws one.
        beliefs: What is held already.

    Raises:
        UserInputError: The space or the defaults are malformed.
    """

    def __init__(
        self,
        space: Mapping[str, CategoricalDistribution],
        defaults: Mapping[str, Choice],
        *,
        seed: int | None = None,
        beliefs: Beliefs | None = None,
    ) -> None:
        choices = {name: distribution.choices for name, distribution in space.items()}
        super().__init__(choices, defaults, secrets.randbits(32) if seed is None else seed)
        self._whole_space = dict(space)
        self._is_warm = beliefs is not None
        self._held = Held.of(beliefs, self.space)
        self._routes = () if beliefs is None else tuple(map(self._believed, beliefs.routes))
        self._columns = np.array(self.space.alternatives, dtype=np.int64).reshape(-1, 2)
        self._progress = Progress.start(len(self._columns))

    @override
    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        return dict(self._whole_space)

    @override
    def propose(self, request: Request) -> Proposal:
        learnt = self._learn(request.view)
        if learnt.trust > ENOUGH_TRUST:
            for route in self._routes[:MAX_ROUTES]:
                if route not in request.view.known:
                    return Proposal(route, "prior")
        spread = request.trial.number * GOLDEN % 1
        for _ in range(DRAWS):
            proposal = self._draw(learnt, request.generator, spread)
            if proposal.route not in request.view.known:
                return proposal
            spread = min(1.0, spread + 0.2)
        return self._draw(learnt, request.generator, 1.0)

    def _draw(self, learnt: _Learnt, generator: np.random.Generator, spread: float) -> Proposal:
        """Change the base as one draw of effects and culprits would have it."""
        mean = learnt.effects.mean
        effect = mean + spread * (learnt.effects.sample(generator) - mean)
        effect[learnt.idle] = 0.0
        allowances = learnt.allowances
        if spread > SURE:
            allowances = allowances.sample(generator)
        costs = Costs(self._columns[:, 0], effect, learnt.crashes, allowances)
        flags = climb(trim(learnt.base, costs), costs)
        covers = spread > 1 - COVERING * learnt.tried.mean()
        if covers:  # without values that never ran: if it breaks, it is a pair's fault
            flags &= learnt.tried | learnt.base
            allowed = learnt.tried & ~learnt.idle
            flags = cover(flags, replace(costs, effect=mean), allowed, generator)
        new = flags & ~learnt.base
        if spread <= SURE:
            reason = "exploiting"
        elif 2 * int((new & ~learnt.crashes.cleared.diagonal()).sum()) > int(new.sum()):
            reason = "screening"
        else:
            reason = "interaction" if covers else "exploring"
        return Proposal(self._route(flags), reason)

    def _learn(self, view: TrialView) -> _Learnt:
        space = self.space
        flags = space.flags(view.routes)
        log_ratio = view.log_ratio(space.default)
        bad = view.failed | very_slow(flags, log_ratio)
        idle = np.asarray(flags[view.unchanged].any(axis=0))
        used = np.isfinite(log_ratio) & ~view.unchanged & ~bad
        table, target = flags[used] & ~idle, log_ratio[used]
        seen = np.minimum(log_ratio, STEEPEST)
        trust = trust_in(self._held, flags, seen, view.failed) if self._is_warm else 0.0
        held = self._held.weighed(trust)
        effects = fit_effects(table, target, held.prior)
        if view.pending:
            # Trials in flight count as measured as expected: what they try is less unknown.
            table = np.vstack([table, space.flags(view.pending) & ~idle])
            expected = table[len(target) :] @ effects.mean
            effects = fit_effects(table, np.concatenate([target, expected]), held.prior)
        is_default = np.asarray(~flags.any(axis=1))
        return _Learnt(
            effects=effects,
            crashes=self._risks(flags, bad, held),
            allowances=learn_allowances(flags, view.constraints, is_default),
            idle=idle,
            base=space.flags([view.incumbent(space.default)])[0] & ~idle,
            trust=trust,
            tried=np.asarray(flags[~bad & ~view.violated].any(axis=0)),
        )

    def _risks(self, flags: Flags, bad: Flags, held: Held) -> Crashes:
        """What breaks or is very slow, and of values that never ran what is held to break limits."""
        self._progress = self._progress.after(flags, bad)
        crashes = learn_crashes(flags, bad, held.failure, self._progress)
        never_ran = ~crashes.cleared.diagonal()
        return replace(crashes, single=crashes.single - never_ran * np.log1p(-held.violation))

    def _believed(self, values: Mapping[str, Choice]) -> Route:
        """A route of the beliefs, as far as this space has it."""
        known = {k: v for k, v in values.items() if self.space.encode({k: v}) is not None}
        return self.space.encode(known) or self.space.default

    def _route(self, flags: Flags) -> Route:
        route = np.array(self.space.default, dtype=np.int64)
        knobs, choices = self._columns[flags].T
        route[knobs] = choices
        return tuple(route.tolist())


@dataclass(frozen=True, slots=True)
class _Learnt:
    """What the trials say; flags are of shape (values,).

    Attributes:
        effects: On log latency.
        crashes: What breaks.
        allowances: What uses up accuracy and the like.
        idle: Values that were part of a route that left the engine unchanged.
        base: The fastest route so far.
        trust: In the beliefs that the search began with.
        tried: Values that some feasible route had that was not very slow.
    """

    effects: Effects
    crashes: Crashes
    allowances: Allowances
    idle: Flags
    base: Flags
    trust: float
    tried: Flags
