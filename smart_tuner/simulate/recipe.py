"""Drawing a simulated compiler from shares and sizes of effects."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from smart_tuner.simulate.compiler import SimulatedCompiler
from smart_tuner.simulate.effects import Failure, PairEffect, ValueEffect
from smart_tuner.simulate.knob_choice import choose_knobs, draw_gates

if TYPE_CHECKING:
    import numpy as np

    from smart_tuner.simulate.effects import Gate, Noise

    Setting = tuple[str, str]

EPSILON = 1e-3

# How breaking values break. That crashes, wrong results and routes that the compiler does not
# take all occur is seen; the shares are an assumption.
_FAILURES = {
    Failure.BUILD_ERROR: 0.45,
    Failure.ABORT: 0.1,
    Failure.SEGFAULT: 0.1,
    Failure.HANG: 0.05,
    Failure.RUN_ERROR: 0.05,
    Failure.NAN: 0.15,
    Failure.NOT_APPLIED: 0.1,
}


@dataclass(frozen=True, slots=True)
class Recipe:
    """Shares are of the values that are not default; sizes are of the log latency.

    Sizes of helping and harming values follow a Pareto distribution: ``smallest`` x U^(-1/tail)
    for a uniform U, cut at ``largest``.

    Attributes:
        helping: Share that makes the engine faster by ``smallest`` or more.
        harming: Share that makes it slower by as much.
        smallest: Smallest size.
        largest: Largest size.
        tail: Exponent; below 2 the variance is that of a few large effects.
        background: Share with a small effect, normal with a standard deviation of a sixth of
            ``smallest``, cut below ``smallest``.
        noop: Share, of the values without any effect, that leaves the engine as it is.
        failing: Share that breaks.
        lossy_helping: Share of the helping values that costs accuracy.
        lossy: Share of all other values that costs accuracy.
        pairs: Interacting pairs per knob, half faster and half slower.
        pair_smallest: Smallest size of an interaction; ``largest`` and ``tail`` hold too.
        deceptive: Share of the faster pairs of which each value alone is 1 % slower or more.
        crash_pairs: Crashing pairs per knob.
        hubs: Knobs in which all interactions meet; 0 lets any two values interact.
        redundant: Share of the helping values that come in twos which help for one reason: both
            together gain what the better one gains alone.
        steep: Share of the harming values that slow the engine down by 1.3 to 20 times,
            log-uniform.
        hidden_gates: Share of parents whose non-default value opens their children; ``None``
            gives a compiler without gates.
    """

    helping: float = 0.03
    harming: float = 0.06
    smallest: float = 0.01
    largest: float = 0.25
    tail: float = 1.5
    background: float = 0.25
    noop: float = 0.5
    failing: float = 0.05
    lossy_helping: float = 0.25
    lossy: float = 0.02
    pairs: float = 0.02
    pair_smallest: float = 0.01
    deceptive: float = 0.0
    crash_pairs: float = 0.01
    hubs: int = 0
    redundant: float = 0.0
    steep: float = 0.0
    hidden_gates: float | None = None


def draw_compiler(
    recipe: Recipe, knob_count: int, noise: Noise, rng: np.random.Generator, origin: str
) -> SimulatedCompiler:
    """Draw one compiler; the same arguments give an equal one."""
    knobs = choose_knobs(knob_count, rng, families=recipe.hidden_gates is not None)
    settings = [(knob.name, value) for knob in knobs for value in knob.choices[1:]]
    effects = draw_effects(recipe, settings, rng)
    pairs = draw_pairs(recipe, knob_count, effects, rng)
    build_seconds = float(rng.uniform(8, 75))
    gates: tuple[Gate, ...] = ()
    if recipe.hidden_gates is not None:
        gates = draw_gates(knobs, recipe.hidden_gates, rng)
    return SimulatedCompiler(
        knobs=knobs,
        base_latency_ms=float(0.2 * 100 ** rng.random()),
        epsilon=EPSILON,
        effects=tuple(
            effect for effect in effects.values() if effect != ValueEffect(*_key(effect))
        ),
        pairs=pairs,
        gates=gates,
        noise=noise,
        build_seconds=build_seconds,
        timeout_seconds=4 * build_seconds,
        origin=origin,
    )


def _key(effect: ValueEffect) -> Setting:
    return effect.knob, effect.value


def _size(recipe: Recipe, smallest: float, rng: np.random.Generator) -> float:
    size = smallest * (1 - rng.random()) ** (-1 / recipe.tail)
    return float(min(size, recipe.largest))


def draw_effects(
    recipe: Recipe, settings: list[Setting], rng: np.random.Generator
) -> dict[Setting, ValueEffect]:
    """Draw what each setting does, one role each."""
    shares = (recipe.helping, recipe.harming, recipe.background, recipe.failing)
    roles = rng.choice(5, size=len(settings), p=[*shares, 1 - sum(shares)])
    if recipe.helping and 0 not in roles:
        roles[rng.integers(len(roles))] = 0  # few knobs: something is there to be found
    return {
        setting: _draw_effect(recipe, setting, int(role), rng)
        for setting, role in zip(settings, roles, strict=True)
    }


def _draw_effect(
    recipe: Recipe, setting: Setting, role: int, rng: np.random.Generator
) -> ValueEffect:
    log_latency = 0.0
    failure = None
    if role in (0, 1):
        log_latency = (-1 if role == 0 else 1) * _size(recipe, recipe.smallest, rng)
        if recipe.steep and role == 1 and rng.random() < recipe.steep:
            log_latency = math.log(1.3 * (20 / 1.3) ** rng.random())
    elif role == 2:
        limit = 0.95 * recipe.smallest
        log_latency = min(limit, max(-limit, recipe.smallest / 6 * rng.standard_normal()))
    elif role == 3:
        failure = _draw_failure(rng)
    elif rng.random() < recipe.noop:
        return ValueEffect(*setting, noop=True)
    loss = 0.0
    if rng.random() < (recipe.lossy_helping if role == 0 else recipe.lossy):
        loss = float(EPSILON * 10 ** rng.uniform(-1.3, 0.5))
    return ValueEffect(
        *setting,
        log_latency=float(log_latency),
        loss=loss,
        log_build=float(0.02 * rng.standard_normal()),
        failure=failure,
    )


def _draw_failure(rng: np.random.Generator) -> Failure:
    return tuple(_FAILURES)[int(rng.choice(len(_FAILURES), p=tuple(_FAILURES.values())))]


def draw_pairs(
    recipe: Recipe, knob_count: int, effects: dict[Setting, ValueEffect], rng: np.random.Generator
) -> tuple[PairEffect, ...]:
    """Draw interactions and crashing pairs; deceptive ones also change ``effects``."""
    free = [setting for setting, effect in effects.items() if not (effect.noop or effect.failure)]
    firsts = _of_hubs(free, recipe.hubs, rng) if recipe.hubs else free
    found = {
        frozenset((pair.first, pair.second)): pair
        for pair in _redundant_pairs(recipe, effects, rng)
    }
    for _ in range(round(recipe.pairs * knob_count)):
        first, second = _draw_two(firsts, free, rng)
        if first[0] == second[0] or frozenset((first, second)) in found:
            continue
        size = _size(recipe, recipe.pair_smallest, rng)
        if rng.random() < 0.5:
            size = -size
            if rng.random() < recipe.deceptive:
                size -= _mask(effects, (first, second), rng)
        found[frozenset((first, second))] = PairEffect(first, second, log_latency=size)
    for _ in range(round(recipe.crash_pairs * knob_count)):
        first, second = _draw_two(free, free, rng)
        if first[0] != second[0]:
            crash = PairEffect(first, second, failure=Failure.BUILD_ERROR)
            found.setdefault(frozenset((first, second)), crash)
    return tuple(found.values())


def _of_hubs(settings: list[Setting], count: int, rng: np.random.Generator) -> list[Setting]:
    """Keep the values of a few knobs."""
    names = list(dict.fromkeys(name for name, _ in settings))
    hubs = {names[index] for index in rng.permutation(len(names))[:count]}
    return [setting for setting in settings if setting[0] in hubs]


def _redundant_pairs(
    recipe: Recipe, effects: dict[Setting, ValueEffect], rng: np.random.Generator
) -> list[PairEffect]:
    """Take back the smaller gain of every two helping values that help for one reason."""
    if not recipe.redundant:
        return []
    helping = [item for item, effect in effects.items() if effect.log_latency <= -recipe.smallest]
    order = [helping[index] for index in rng.permutation(len(helping))]
    kept = order[: 2 * round(recipe.redundant * len(order) / 2)]
    return [
        PairEffect(
            first,
            second,
            log_latency=-max(effects[first].log_latency, effects[second].log_latency),
        )
        for first, second in zip(kept[::2], kept[1::2], strict=True)
        if first[0] != second[0]
    ]


def _draw_two(
    firsts: list[Setting], seconds: list[Setting], rng: np.random.Generator
) -> tuple[Setting, Setting]:
    if not firsts or len(seconds) < 2:
        return ("", ""), ("", "")
    first, second = rng.integers((len(firsts), len(seconds)))
    return firsts[first], seconds[second]


def _mask(
    effects: dict[Setting, ValueEffect], pair: tuple[Setting, Setting], rng: np.random.Generator
) -> float:
    """Make both values harmful alone; return what the pair has to make up for."""
    total = 0.0
    for setting in pair:
        harm = float(rng.uniform(0.01, 0.02))
        old = effects[setting]
        effects[setting] = ValueEffect(
            *setting, log_latency=harm, loss=0.0, log_build=old.log_build
        )
        total += harm
    return total
