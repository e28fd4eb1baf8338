"""The default sampler with one mechanism switched off, or replaced, at a time.

A variant puts other objects into modules of the product while one search runs in this process, and
takes them out again afterwards. So the product needs no switches, and a name that it no longer has
is an error, not a variant that changes nothing.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import traceback
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar
from unittest import mock

import numpy as np
from optuna.samplers import TPESampler

from smart_tuner.bench.play import play_with
from smart_tuner.bench.run import Run, Task
from smart_tuner.errors import UserInputError
from smart_tuner.samplers import registry
from smart_tuner.samplers.route_sampler import allowances, climb, cover, crashes, effects, sampler
from smart_tuner.samplers.route_sampler.effects import Effects
from smart_tuner.samplers.route_sampler.history import TrialView
from smart_tuner.samplers.route_sampler.proposer import Proposal, Request
from smart_tuner.samplers.route_sampler.sampler import RouteSampler

DEFAULT = "default"
AND = "+"
WHOLE = 1.0
TRUE_NOISE = 0.0095
FEW_CHANGES = 12
NOTHING_KNOWN: frozenset[Any] = frozenset()

Patch = tuple[object, str, object]
"""Module, name in it, and what stands there instead."""


@dataclass(frozen=True)
class Variant:
    """One way to change the sampler.

    Attributes:
        what: What is done, in words.
        patches: Makes what is put into modules; anew for every run, since some keep a state.
        kind: The class of the sampler.
    """

    what: str
    patches: Callable[[], tuple[Patch, ...]] = tuple
    kind: type[RouteSampler] = RouteSampler

    @contextlib.contextmanager
    def in_place(self) -> Iterator[None]:
        """Change the sampler of this process for a while."""
        with contextlib.ExitStack() as stack:
            for module, name, value in ((registry, "RouteSampler", self.kind), *self.patches()):
                stack.enter_context(mock.patch.object(module, name, value))
            yield


@dataclass(frozen=True)
class Play:
    """One variant on one workload."""

    task: Task

    def tasks(self) -> tuple[Task, ...]:
        return (self.task,)

    def digest(self, task: Task) -> str:
        return task.workload.compiler().digest()


def play_variant(play: Play) -> tuple[Run, ...]:
    """Run one search; a worker process calls this.

    A variant that breaks down (it may leave the figures that the product is made for) has no run
    there, and says so; the others go on.
    """
    task = play.task
    try:
        with variant_of(task.sampler).in_place():
            return (play_with(task, task.workload.compiler(), DEFAULT)[0],)
    except Exception:
        print(f"\n{task.sampler} on {task.workload.name} broke down:", file=sys.stderr)
        traceback.print_exc()
        return ()


def variant_of(name: str) -> Variant:
    """Look up a variant; `a+b` is both at once.

    Raises:
        UserInputError: There is none of this name, or the two cannot be had together.
    """
    parts = name.split(AND)
    unknown = [part for part in parts if part not in VARIANTS]
    if unknown:
        msg = f"No variant {unknown[0]!r}; there are {', '.join(VARIANTS)}."
        raise UserInputError(msg)
    chosen = [VARIANTS[part] for part in parts]
    return chosen[0] if len(chosen) == 1 else _together(name, chosen)


def _together(name: str, chosen: Sequence[Variant]) -> Variant:
    kinds = tuple(dict.fromkeys(v.kind for v in chosen if v.kind is not RouteSampler))
    places = Counter((id(module), place) for v in chosen for module, place, _ in v.patches())
    alike = [sum(issubclass(kind, base) for kind in kinds) for base in (OtherWidths, TpeOnActive)]
    if max((*places.values(), *alike), default=0) > 1:
        msg = f"{name}: two of these change the same thing."
        raise UserInputError(msg)
    return Variant(
        ", and ".join(v.what for v in chosen),
        lambda: tuple(patch for v in chosen for patch in v.patches()),
        type("Together", (*kinds, RouteSampler), {}),
    )


def constants(module: object, **values: object) -> Callable[[], tuple[Patch, ...]]:
    """Patches of one module."""
    return lambda: tuple((module, name, value) for name, value in values.items())


# ------------------------------------------------------------------ how wide a draw is


@dataclass(frozen=True)
class Rescaled:
    """Effects whose draws lie nearer to, or further from, what is expected."""

    effects: Effects
    width: float

    @property
    def mean(self) -> np.ndarray:
        return self.effects.mean

    def sample(self, generator: np.random.Generator) -> np.ndarray:
        return self.mean + self.width * (self.effects.sample(generator) - self.mean)


class OtherWidths(RouteSampler):
    """Draws of another width; which asks let values meet, and which exploit, stays as it is."""

    def width(self, spread: float) -> float:
        raise NotImplementedError

    def _draw(self, learnt: Any, generator: np.random.Generator, spread: float) -> Proposal:
        spread = max(spread, 1e-3)
        drawn = Rescaled(learnt.effects, self.width(spread) / spread)
        return super()._draw(replace(learnt, effects=drawn), generator, spread)


class WholeDraws(OtherWidths):
    def width(self, spread: float) -> float:
        return WHOLE


class NoDraws(OtherWidths):
    def width(self, spread: float) -> float:
        return 0.0


class NoExploiting(OtherWidths):
    def width(self, spread: float) -> float:
        return spread if spread > sampler.SURE else WHOLE


class AnySpread:
    """Stands in for GOLDEN: trial number times this is drawn evenly, not spread evenly."""

    def __rmul__(self, number: int) -> float:
        return float(np.random.default_rng((618, number)).random())


# ------------------------------------------------------------------ what asks may repeat


class NoRedraw(RouteSampler):
    """The first draw counts; if it is known, its nearest neighbour is tried."""

    def propose(self, request: Request) -> Proposal:
        return super().propose(_forgetful(request))


class Repeats(RouteSampler):
    """A route that is known is tried again if it is drawn again."""

    def _next(self, request: Request) -> Proposal:
        if self.space.default not in request.view.known:
            return super()._next(request)
        return self.propose(_forgetful(request))


def _forgetful(request: Request) -> Request:
    return replace(request, view=replace(request.view, known=NOTHING_KNOWN))


# ------------------------------------------------------------------ what trials say


class OtherView(RouteSampler):
    """Reads trials in another way."""

    def seen(self, view: TrialView) -> TrialView:
        return view

    def _learn(self, view: TrialView) -> Any:
        return super()._learn(self.seen(view))


class UnchangedIsMeasured(OtherView):
    """The baseline's own engine counts as a measurement like others, at the baseline's figure."""

    def seen(self, view: TrialView) -> TrialView:
        return super().seen(replace(view, unchanged=np.zeros_like(view.unchanged)))


class LossesFail(OtherView):
    """A route over epsilon is a route that broke: its latency and its loss are not looked at."""

    def seen(self, view: TrialView) -> TrialView:
        none, bad = np.zeros_like(view.violated), view.failed | view.violated
        return super().seen(replace(view, failed=bad, violated=none, constraints={}))


class LossesBreak(OtherView):
    """The same, but the latencies are learned from."""

    def seen(self, view: TrialView) -> TrialView:
        self._now_bad = view.failed | view.violated
        return super().seen(replace(view, constraints={}))

    def _risks(self, flags: np.ndarray, failed: np.ndarray, held: Any) -> crashes.Crashes:
        return super()._risks(flags, self._now_bad, held)


class LossesIgnored(OtherView):
    """What uses up accuracy is not learned; a route over epsilon is still never the best."""

    def seen(self, view: TrialView) -> TrialView:
        return super().seen(replace(view, constraints={}))


class LossesUntimed(OtherView):
    """Latencies of routes over epsilon are not learned from."""

    def seen(self, view: TrialView) -> TrialView:
        timed = np.where(view.violated, np.nan, view.log_ms)
        return super().seen(replace(view, log_ms=timed))


class ModelBase(RouteSampler):
    """Starts from the feasible route that should be fastest, not from that with the best figure.

    The best of many noisy figures is partly luck; but effects that add up know nothing of pairs.
    """

    figure: ClassVar[float] = 0.0
    """Weight of a route's own figure beside what is expected of it."""

    def _learn(self, view: TrialView) -> Any:
        learnt = super()._learn(view)
        rows = np.flatnonzero(view.feasible)
        if not rows.size:
            return learnt
        flags = self.space.flags(view.routes)[rows] & ~learnt.idle
        seen = view.log_ratio(self.space.default)[rows]
        weighed = (1 - self.figure) * (flags @ learnt.effects.mean) + self.figure * seen
        return replace(learnt, base=flags[int(np.argmin(weighed))])


class HalfModelBase(ModelBase):
    figure = 0.5


# ------------------------------------------------------------------ what breaks


def _never_slow(flags: Any, log_ratio: Any) -> Any:
    return np.zeros(len(flags), dtype=bool)


def _slower_than_the_default(flags: Any, log_ratio: Any) -> Any:
    return log_ratio > effects.STEEPEST


def _nobody_convicted(flags: Any, excess: Any, is_over: Any) -> Any:
    return allowances._fit(flags, excess)


def _no_risk(*arguments: Any) -> crashes.Crashes:
    learnt = crashes.learn_crashes(*arguments)
    return replace(learnt, single=0 * learnt.single, pair=0 * learnt.pair)


def _no_pairs(*arguments: Any) -> crashes.Crashes:
    learnt = crashes.learn_crashes(*arguments)
    return replace(learnt, pair=0 * learnt.pair)


def _blame_nobody(bad: np.ndarray, prior: np.ndarray, leak: np.ndarray) -> np.ndarray:
    return prior


def _blame_no_pair(bad: np.ndarray, single: np.ndarray, pair: np.ndarray) -> None:
    return None


def _blame_everybody(bad: np.ndarray, prior: np.ndarray, leak: np.ndarray) -> np.ndarray:
    """Blame of each route shared out by prior, as if it were alone: no talk between routes."""
    total = np.maximum((bad * prior).sum(axis=1, keepdims=True), 1e-12)
    shares = np.where(bad, (1 - leak)[:, None] * prior / total, 0.0)
    return np.maximum(prior, np.minimum(shares.max(axis=0, initial=0.0), 0.999))


def _blame_damped(bad: np.ndarray, prior: np.ndarray, leak: np.ndarray) -> np.ndarray:
    """Belief propagation as in ``crashes.blame``, with the rounds and damping of the report's."""
    prior_odds = np.log(prior) - np.log1p(-prior)
    evidence = np.zeros(bad.shape)
    for _ in range(40):
        belief = crashes._probability(prior_odds + evidence.sum(axis=0) - evidence)
        all_good = np.where(bad, np.log1p(-np.minimum(belief, 1 - 1e-9)), 0.0)
        others_good = all_good.sum(axis=1, keepdims=True) - all_good
        surely = others_good + np.log1p(-leak)[:, None]
        evidence = 0.5 * evidence + 0.5 * np.where(bad, -np.log(-np.expm1(surely)), 0.0)
    return crashes._probability(prior_odds + evidence.sum(axis=0))


_BLAME = crashes.blame


def _blame_values_alone(bad: np.ndarray, prior: np.ndarray, leak: np.ndarray) -> np.ndarray:
    return _BLAME(bad, prior, np.full_like(leak, crashes.LEAK))


def _expected_shares(fit: np.ndarray) -> tuple[float, float]:
    return crashes.EXPECTED_SHARE, crashes.EXPECTED_PAIR_SHARE


# ------------------------------------------------------------------ where the climb goes


def _from_the_default(route: np.ndarray, costs: climb.Costs) -> np.ndarray:
    return climb.climb(np.zeros_like(route), costs)


def _few_changes(route: np.ndarray, costs: climb.Costs) -> np.ndarray:
    return climb.climb(route, costs, FEW_CHANGES)


_CHANGES = climb._changes


def _no_removals(
    route: np.ndarray, costs: climb.Costs, risk: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    gains, risks = _CHANGES(route, costs, risk)
    gains[route] = -1.0
    return gains, risks


class LocalMoves(RouteSampler):
    """Some asks change the best route in few places and let nothing meet."""

    since: ClassVar[int] = 60
    every: ClassVar[int] = 3
    changes: ClassVar[int] = 3

    def propose(self, request: Request) -> Proposal:
        number = request.trial.number
        if number < self.since or number % self.every:
            return super().propose(request)
        few = functools.partial(climb.climb, limit=self.changes)
        with mock.patch.multiple(sampler, climb=few, COVERING=0.0):
            return super().propose(request)


# ------------------------------------------------------------------ where values meet


class Always:
    """Stands in for COVERING: its full share, whatever has run so far."""

    def __mul__(self, share: float) -> float:
        return _COVERING


_COVERING = sampler.COVERING


def _meet_whoever(
    route: np.ndarray, costs: climb.Costs, tried: np.ndarray, generator: np.random.Generator
) -> np.ndarray:
    """Neutral knobs get values by lot: who has met whom is not looked at."""
    nobody = np.zeros_like(costs.crashes.cleared)
    blind = replace(costs, crashes=replace(costs.crashes, cleared=nobody))
    return cover.cover(route, blind, tried, generator)


class _CoverOther:
    """Lets covering asks begin from another route than what is left of the climb."""

    def __init__(self) -> None:
        self.begin = np.zeros(0, dtype=bool)

    def kept(self, route: np.ndarray, climbed: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def climb(self, route: np.ndarray, costs: climb.Costs) -> np.ndarray:
        climbed = climb.climb(route, costs)
        self.begin = self.kept(route, climbed).copy()
        return climbed

    def cover(
        self, _: np.ndarray, costs: climb.Costs, tried: np.ndarray, generator: np.random.Generator
    ) -> np.ndarray:
        return cover.cover(self.begin, costs, tried, generator)

    @classmethod
    def patches(cls) -> tuple[Patch, ...]:
        mine = cls()
        return (sampler, "climb", mine.climb), (sampler, "cover", mine.cover)


class _CoverNew(_CoverOther):
    """Keeps values that never ran."""

    def kept(self, route: np.ndarray, climbed: np.ndarray) -> np.ndarray:
        return climbed


class _CoverBest(_CoverOther):
    """Begins from the best route, without a draw."""

    def kept(self, route: np.ndarray, climbed: np.ndarray) -> np.ndarray:
        return route


# ------------------------------------------------------------------ TPE on the active subset


class TpeOnActive(RouteSampler):
    """Hands some asks to Optuna's multivariate TPE, over the knobs that matter by the model.

    All other knobs stay as in the fastest feasible route so far.
    """

    since: ClassVar[int] = 60
    every: ClassVar[int] = 4
    matters: ClassVar[float] = cover.VALUABLE
    most_knobs: ClassVar[int] = 16

    def propose(self, request: Request) -> Proposal:
        number = request.trial.number
        if number >= self.since and number % self.every == 0:
            proposal = self._from_tpe(request)
            if proposal is not None:
                return proposal
        return super().propose(request)

    def _from_tpe(self, request: Request) -> Proposal | None:
        names = self._active(request.view)
        if not names:
            return None
        seed = zlib.crc32(f"{self.seed} {request.trial.number}".encode())
        tpe = TPESampler(n_startup_trials=0, multivariate=True, constant_liar=True, seed=seed)
        space: dict[str, Any] = {name: self._whole_space[name] for name in names}
        values: Mapping[str, Any] = tpe.sample_relative(request.study, request.trial, space)
        best = self.space.decode(request.view.incumbent(self.space.default))
        route = self.space.encode({**best, **values})
        return None if route is None else Proposal(route, "tpe on the active subset")

    def _active(self, view: TrialView) -> list[str]:
        """Knobs with a value of some effect, the largest effects first; none if only one has."""
        size = np.abs(self._learn(view).effects.mean)
        columns = [int(c) for c in np.argsort(-size, kind="stable") if size[c] >= self.matters]
        names = dict.fromkeys(self.space.names[self._columns[c, 0]] for c in columns)
        return list(names)[: self.most_knobs] if len(names) > 1 else []


class TpeOnHalf(TpeOnActive):
    every = 2


class TpeLate(TpeOnActive):
    since, every = 120, 3


# ------------------------------------------------------------------ all of them

VARIANTS: dict[str, Variant] = {
    DEFAULT: Variant("as it ships"),
    # Values meet.
    "no-cover": Variant("no covering asks", constants(sampler, COVERING=0.0)),
    "cover-by-lot": Variant(
        "covering asks set neutral knobs by lot", constants(sampler, cover=_meet_whoever)
    ),
    "cover-new": Variant("covering asks keep values that never ran", _CoverNew.patches),
    "cover-best": Variant("covering asks begin from the best route", _CoverBest.patches),
    "cover-at-once": Variant(
        "covering asks at their full share from the start", constants(sampler, COVERING=Always())
    ),
    "cover-any-risk": Variant(
        "covering asks mind no risk of pairs", constants(cover, RISK=np.inf)
    ),
    "cover-valuable": Variant(
        "covering asks change values that matter as well",
        constants(cover, VALUABLE=np.inf, TOLERANCE=np.inf),
    ),
    # What breaks.
    "no-crash-model": Variant(
        "no risk is foreseen or avoided", constants(sampler, learn_crashes=_no_risk)
    ),
    "no-blame": Variant(
        "broken routes blame no value and no pair",
        constants(crashes, blame=_blame_nobody, _blame_pairs=_blame_no_pair),
    ),
    "no-pair-blame": Variant(
        "broken routes blame no pair", constants(crashes, _blame_pairs=_blame_no_pair)
    ),
    "no-pair-risk": Variant("pairs carry no risk", constants(sampler, learn_crashes=_no_pairs)),
    "no-pair-excuse": Variant(
        "values are blamed as if no pair could break a route",
        constants(crashes, blame=_blame_values_alone),
    ),
    "plain-blame": Variant(
        "each broken route shares its blame out alone", constants(crashes, blame=_blame_everybody)
    ),
    "damped-blame": Variant(
        "belief propagation in 40 damped rounds", constants(crashes, blame=_blame_damped)
    ),
    "fixed-shares": Variant(
        "the shares of values and pairs that break are not learned",
        constants(crashes, _shares=_expected_shares),
    ),
    "slow-adds-up": Variant(
        "a route that is many times slower is a sum of effects, not broken",
        constants(sampler, STEEPEST=float("inf"), very_slow=_never_slow),
    ),
    "slow-by-default": Variant(
        "a route counts as broken by how it compares with the default alone",
        constants(sampler, very_slow=_slower_than_the_default),
    ),
    "no-clearing": Variant(
        "a value that ran is as suspect as one that never did", constants(crashes, CLEARED=1.0)
    ),
    "caution-1": Variant("the chance to work to the power of 1", constants(climb, CAUTION=1.0)),
    # Accuracy.
    "losses-fail": Variant("losses over epsilon are plain failures", kind=LossesFail),
    "losses-break": Variant(
        "losses over epsilon are crashes, latencies still count", kind=LossesBreak
    ),
    "losses-ignored": Variant("what uses up accuracy is not learned", kind=LossesIgnored),
    "losses-untimed": Variant(
        "latencies of routes over epsilon are not learned from", kind=LossesUntimed
    ),
    "no-conviction": Variant(
        "a value that uses nothing somewhere is never behind a loss elsewhere",
        constants(allowances, _convict=_nobody_convicted),
    ),
    "no-culprits": Variant("who is behind a loss is never drawn", constants(sampler, SURE=2.0)),
    "all-culprits": Variant("who is behind a loss is always drawn", constants(sampler, SURE=-1.0)),
    # Latency.
    "whole-draws": Variant("every ask draws the whole posterior", kind=WholeDraws),
    "no-draws": Variant("every ask takes effects as expected", kind=NoDraws),
    "no-exploiting": Variant("asks that exploit draw the whole posterior", kind=NoExploiting),
    "any-spread": Variant(
        "spreads drawn evenly, not evenly spread", constants(sampler, GOLDEN=AnySpread())
    ),
    "true-noise": Variant("noise at the true 0.95 %", constants(effects, NOISE=TRUE_NOISE)),
    "ridge": Variant(
        "ridge with the prior's variance for spike and slab", constants(effects, SWEEPS=0)
    ),
    "unchanged-measured": Variant(
        "an unchanged engine is a measurement, no fact", kind=UnchangedIsMeasured
    ),
    # Routes.
    "from-default": Variant(
        "climbs start at the default, not at the best route",
        constants(sampler, climb=_from_the_default),
    ),
    "model-base": Variant(
        "the best route is the one expected to be, by its values", kind=ModelBase
    ),
    "half-model-base": Variant(
        "the best route by the mean of figure and expectation", kind=HalfModelBase
    ),
    "no-removal": Variant(
        "a value of the best route is replaced, never taken out",
        constants(climb, _changes=_no_removals),
    ),
    "few-changes": Variant(
        f"at most {FEW_CHANGES} changes an ask", constants(sampler, climb=_few_changes)
    ),
    "no-redraw": Variant("the nearest unknown route for a known one at once", kind=NoRedraw),
    "repeats": Variant("known routes may be tried again", kind=Repeats),
    # Added instead of left out.
    "local-moves": Variant(
        "from trial 60 on every 3rd ask: at most 3 changes of the best route", kind=LocalMoves
    ),
    "tpe-active": Variant("from trial 60 on every 4th ask: TPE on active knobs", kind=TpeOnActive),
    "tpe-half": Variant("from trial 60 on every 2nd ask: TPE on active knobs", kind=TpeOnHalf),
    "tpe-late": Variant("from trial 120 on every 3rd ask: TPE on active knobs", kind=TpeLate),
}
