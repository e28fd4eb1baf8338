"""Families of simulated compilers: what one member teaches holds for another, up to a point.

A member of a family stands for one network on one compiler. Most of what matters is the family's:
the same values matter in every member, of like size, and the rest are each member's own. Yet a
value that helps one network may hurt another. In the published logs of a GCC study (M. Nowack,
github.com/ManuelNowack/compiler-flag-optimization) the twenty flags that matter most often cover
54 % of those that matter to a program left out, and one flag helped 15 programs by more than 1 %
and hurt 17.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from smart_tuner.errors import UserInputError
from smart_tuner.simulate.compiler import SimulatedCompiler
from smart_tuner.simulate.effects import Noise
from smart_tuner.simulate.knob_choice import choose_knobs
from smart_tuner.simulate.recipe import EPSILON, Recipe, draw_effects, draw_pairs

if TYPE_CHECKING:
    from typing import TypeVar

    from smart_tuner.knobs.knob import Knob
    from smart_tuner.simulate.effects import PairEffect, ValueEffect

    Setting = tuple[str, str]
    Effect = TypeVar("Effect", ValueEffect, PairEffect)

SIZE_SPREAD = 0.25
"""Standard deviation of ln(size) of a shared effect between members; an assumption."""

_RECIPE = Recipe()
_FAMILY = 0
"""Random stream of what members share; member k draws from k + 1."""


@dataclass(frozen=True, slots=True)
class Family:
    """What members have in common.

    Attributes:
        seed: Which family; at least 0.
        shared: Share of the values that matter (to latency, accuracy or at all) that matter in
            every member.
        flipped: Share of the shared effects whose signs differ between two members, up to 0.5.
        knob_count: Knobs of each member.

    Raises:
        UserInputError: A figure is out of bounds.
    """

    seed: int
    shared: float
    flipped: float
    knob_count: int = 209

    def __post_init__(self) -> None:
        if self.seed < 0 or not 0 <= self.shared <= 1 or not 0 <= self.flipped <= 0.5:
            msg = (
                f"No such family: seed {self.seed}, shared {self.shared}, flipped {self.flipped}; "
                "the seed is at least 0, shared up to 1, flipped up to 0.5."
            )
            raise UserInputError(msg)

    def member(self, number: int) -> SimulatedCompiler:
        """Draw a member; the same number gives an equal one."""
        common = np.random.default_rng((self.seed, _FAMILY))
        knobs = choose_knobs(self.knob_count, common, families=False)
        base = _draw(knobs, common)
        is_shared = {item for item in base.effects if common.random() < self.shared}
        own_random = np.random.default_rng((self.seed, number + 1))
        own = _draw(knobs, own_random)
        effects = {
            item: self._varied(base.effects[item], own_random)
            if item in is_shared and matters(base.effects[item])
            else self._own(own.effects[item], own_random)
            for item in base.effects
        }
        pairs = [
            *(self._varied(pair, own_random) for pair in base.pairs if _kept(pair, is_shared)),
            *(pair for pair in own.pairs if own_random.random() >= self.shared),
        ]
        build_seconds = float(own_random.uniform(8, 75))
        return SimulatedCompiler(
            knobs=knobs,
            base_latency_ms=float(0.2 * 100 ** own_random.random()),
            epsilon=EPSILON,
            effects=tuple(effects.values()),
            pairs=_possible(pairs, effects),
            noise=Noise(),
            build_seconds=build_seconds,
            timeout_seconds=4 * build_seconds,
            origin=f"family seed={self.seed} shared={self.shared:g} flipped={self.flipped:g} "
            f"member={number}",
        )

    def _varied(self, effect: Effect, random: np.random.Generator) -> Effect:
        """A shared effect as one member has it: of another size, and maybe turned round.

        Two members that each turn round with probability p differ with 2 p (1 - p).
        """
        turned = (1 - math.sqrt(1 - 2 * self.flipped)) / 2
        size = math.exp(SIZE_SPREAD * random.standard_normal())
        sign = -1 if random.random() < turned else 1
        amount = abs(effect.log_latency)
        if amount >= _RECIPE.smallest:
            amount = min(_RECIPE.largest, max(_RECIPE.smallest, size * amount))
        return replace(effect, log_latency=math.copysign(amount, sign * effect.log_latency))

    def _own(self, effect: ValueEffect, random: np.random.Generator) -> ValueEffect:
        """A member's own effect: as many of those that matter as the family leaves room for."""
        if matters(effect) and random.random() < self.shared:
            return replace(effect, log_latency=0.0, loss=0.0, failure=None)
        return effect


@dataclass(frozen=True, slots=True)
class _Drawn:
    effects: dict[Setting, ValueEffect]
    pairs: tuple[PairEffect, ...]


def matters(effect: ValueEffect) -> bool:
    """Whether a value changes latency by the smallest size that counts, costs accuracy or breaks."""
    is_large = abs(effect.log_latency) >= _RECIPE.smallest
    return is_large or effect.loss > 0 or effect.failure is not None


def _draw(knobs: tuple[Knob, ...], random: np.random.Generator) -> _Drawn:
    settings = [(knob.name, value) for knob in knobs for value in knob.choices[1:]]
    effects = draw_effects(_RECIPE, settings, random)
    return _Drawn(effects, draw_pairs(_RECIPE, len(knobs), effects, random))


def _kept(pair: PairEffect, shared: set[Setting]) -> bool:
    """Whether an interaction of the family is one of its members too."""
    return pair.first in shared and pair.second in shared


def _possible(
    pairs: list[PairEffect], effects: dict[Setting, ValueEffect]
) -> tuple[PairEffect, ...]:
    """Pairs of values that both reach the engine, each pair once."""
    found = {
        frozenset((pair.first, pair.second)): pair
        for pair in pairs
        if not (effects[pair.first].noop or effects[pair.second].noop)
    }
    return tuple(found.values())
