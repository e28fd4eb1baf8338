"""Kinds of simulated compilers, by name, each drawn from a seed.

Where the figures come from:

* Shares of helping and harming values (3 % and 6 %): the published logs of a GCC study
  (M. Nowack, github.com/ManuelNowack/compiler-flag-optimization), 98 flags on 59 program inputs:
  at the median 3 single flips of about 101 help by more than 1 % and 6 hurt by more than 1 %.
* Tail 1.5: chosen so that 209 knobs can gain about what every method of that study converges to
  within 500 trials, 1.2 (`sparse`, 60 seeds: median 1.26, tenth to ninetieth percentile 1.13 to
  1.51). The cut at 25 % is an assumption.
* Noise: rebuilding one route on TensorRT 8.6 moves the latency by 0.9 %, measuring one engine
  twice on a quiet GPU by 0.3 %. Spikes are an assumption.
* No-ops: on ResNet-50, two of TensorRT-RTX's builder settings changed the plan at all, so half of
  the values without effect is a cautious share.
* Breaking values (5 %): about a dozen on TensorRT's 209 knobs; no published set with so many
  flags has failures, so their kinds are an assumption.
* Build times, 8 to 75 s: MNIST with TensorRT 11.1 on an H100 (8 s) to an OCR classifier with 8.6
  on an H200 (74 s).
* Names, values and parent-child structure: TensorRT's list of 209 knobs, version 2.19.45.

Interactions, gates and crashing pairs have no published measurements at this size: `pairs`,
`gated` and `crashy` are stress tests, and `dense` and `null` the two ends of sparsity.

Five more have the effects of `sparse` and another noise or other losses:

* `steady`: rebuilds are byte for byte the same, as seen with TensorRT-RTX on ResNet-50 and with
  ONNX Runtime; only the 0.3 % of measuring are left.
* `unsteady`: rebuilding moves the latency by 2 %, which is more than two thirds of the effects
  that count (Pareto, 1 % at least, exponent 1.5) have. A stress test: twice what was measured.
* `host`: what our own studies of ONNX Runtime on a shared host had (three networks on four
  processors, 191 trials): half of the 95 % interval was 5 % at the median trial and 20 to 37 % at
  the worst tenth.
* `drifting`: a slow swing of 2 % to either side, every 20 minutes, that pairing with the baseline
  does not cancel. An assumption.
* `lossy`: speed is mostly paid for with accuracy, as with lower precision: three fifths of the
  helping values and an eighth of the others cost some, and losses add up. An assumption.

One came from our first studies on a GPU:

* `steep`: `sparse`, but a fifth of the values hurt, two in five of those by 1.3 to 20 times. With
  ONNX Runtime on an H200 39 of 261 routes that were measured took more than 1.3 times as long as
  the default, though 26 to 39 knobs were searched; single values (no CUDA graph, no TF32, another
  search for convolutions) took two to thirty times as long.

Three were written after the constants of `RouteSampler` were frozen, so that it can be compared
on what it was not tuned to. All three are assumptions:

* `hubs`: the interactions of `pairs`, but all of them with the values of six knobs, as when a
  choice of tactics decides what other choices are worth.
* `redundant`: four in five helping values come in twos that help for one reason, so that both
  gain no more than the better one: what was found first takes the gain of the next.
* `harsh`: gates, interactions, crashing pairs, values that cost accuracy and restless builds at
  once, most of them about half as hard as in their own kinds.
"""

from __future__ import annotations

import zlib
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from smart_tuner.errors import UserInputError
from smart_tuner.simulate.effects import Noise
from smart_tuner.simulate.recipe import Recipe, draw_compiler

if TYPE_CHECKING:
    from smart_tuner.simulate.compiler import SimulatedCompiler

_RECIPES = {
    # Few values matter, some of them a lot; a few interactions.
    "sparse": Recipe(),
    # Many values matter a little: 40 % help by a tenth of a percent or more, 1 % at most.
    "dense": Recipe(
        helping=0.4,
        harming=0.5,
        smallest=0.001,
        largest=0.01,
        tail=3.0,
        background=0.05,
        pairs=0.0,
    ),
    # What matters is which values meet; every second gain hides behind two values that hurt alone.
    "pairs": Recipe(helping=0.02, pairs=0.08, pair_smallest=0.015, deceptive=0.5),
    # Children act only under one value of their parent, half of the time not the default.
    "gated": Recipe(hidden_gates=0.5),
    # Eight flips crash in every other route, though each value alone works.
    "crashy": Recipe(crash_pairs=3.0),
    # Nothing matters; everything that seems to is noise.
    "null": Recipe(
        helping=0.0,
        harming=0.0,
        background=0.0,
        failing=0.0,
        lossy=0.0,
        pairs=0.0,
        crash_pairs=0.0,
    ),
    "steady": Recipe(),
    "unsteady": Recipe(),
    "host": Recipe(),
    "drifting": Recipe(),
    # A helping value is rarely free: which of them to spend the loss on is the question.
    "lossy": Recipe(lossy_helping=0.6, lossy=0.125),
    # What a few knobs are set to decides what many others do.
    "hubs": Recipe(pairs=0.08, pair_smallest=0.015, hubs=6),
    # Gains that were found take from those that were not.
    "redundant": Recipe(helping=0.05, redundant=0.8),
    # Some values make the engine many times slower.
    "steep": Recipe(harming=0.2, steep=0.4),
    # A little of everything that makes a search hard.
    "harsh": Recipe(
        hidden_gates=0.5,
        pairs=0.05,
        deceptive=0.25,
        crash_pairs=1.5,
        lossy_helping=0.4,
        lossy=0.06,
    ),
}

_NOISES = {
    "steady": Noise(build=0.0, spike_rate=0.0),
    "unsteady": Noise(build=0.02),
    "host": Noise(build=0.0, measurement=0.025, spike_rate=0.1, spike_size=0.15),
    "harsh": Noise(build=0.014),
    "drifting": Noise(drift=0.02, drift_period_seconds=1200.0),
}
"""Of generators whose noise is not the usual one."""


def generator_names() -> tuple[str, ...]:
    """Names that ``make_compiler`` takes, sorted."""
    return tuple(sorted(_RECIPES))


def make_compiler(
    name: str,
    *,
    seed: int,
    knob_count: int = 209,
    difficulty: float = 1.0,
    noise: Noise | None = None,
) -> SimulatedCompiler:
    """Draw a compiler; the same arguments give an equal one.

    Args:
        name: One of ``generator_names()``.
        seed: At least 0. Generators draw from separate streams.
        knob_count: 1 to 2,000; TensorRT's real names up to 209.
        difficulty: Multiplies what stands in the way: the shares of breaking and of lossy
            values, of interactions and crashing pairs, and the default noise. 1 is calibrated,
            0 leaves a smooth, noise-free compiler; at most 4.
        noise: Replaces the default noise, e.g. by drift, or by a build noise larger than most
            effects; ``difficulty`` does not touch it.

    Raises:
        UserInputError: An unknown name, or an argument out of bounds.
    """
    if name not in _RECIPES:
        msg = f"No generator {name!r}; there are {', '.join(generator_names())}."
        raise UserInputError(msg)
    if seed < 0 or not 0 <= difficulty <= 4:
        msg = f"Seed {seed} or difficulty {difficulty} is out of bounds: seed >= 0, 0 to 4."
        raise UserInputError(msg)
    rng = np.random.default_rng((seed, zlib.crc32(name.encode())))
    if noise is None:
        noise = _scaled(_NOISES.get(name, Noise()), difficulty)
    origin = f"{name} seed={seed} knobs={knob_count} difficulty={difficulty:g}"
    return draw_compiler(_harden(_RECIPES[name], difficulty), knob_count, noise, rng, origin)


def _scaled(noise: Noise, difficulty: float) -> Noise:
    return replace(
        noise,
        build=noise.build * difficulty,
        measurement=noise.measurement * difficulty,
        spike_rate=min(1.0, noise.spike_rate * difficulty),
        drift=noise.drift * difficulty,
    )


def _harden(recipe: Recipe, difficulty: float) -> Recipe:
    free = 1 - recipe.helping - recipe.harming - recipe.background
    return replace(
        recipe,
        failing=min(free, recipe.failing * difficulty),
        lossy_helping=min(0.9, recipe.lossy_helping * difficulty),
        lossy=min(0.9, recipe.lossy * difficulty),
        pairs=recipe.pairs * difficulty,
        crash_pairs=recipe.crash_pairs * difficulty,
    )
