"""What samplers are compared on: pretend compilers, simulated or recorded, one a workload."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from smart_tuner.bench.recorded import label, load_recorded
from smart_tuner.errors import UserInputError
from smart_tuner.simulate.generators import generator_names, make_compiler

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from smart_tuner.bench.recorded import Compiler

NULL = "null"
"""The generator on which nothing can be gained: it counts false winners instead."""

LEAST_GAIN = 1.03
"""Attainable gain below which a workload says little: its share is mostly noise."""

SEEDS_A_RUN = 1_000_000
"""Distance between the workload seeds of two seeds of a comparison: they never meet."""

LARGEST_SEED = (2**32 - 1) // SEEDS_A_RUN - 1
"""Workloads' seeds are those of samplers as well, some of which take 32 bits."""

TRIES_A_WORKLOAD = 50


@dataclass(frozen=True, slots=True)
class Workload:
    """One pretend compiler, by what it is drawn from.

    Attributes:
        generator: Name of the generator, or the label of what was recorded.
        seed: Its seed; the samplers' seed as well. A recorded compiler is always the same one,
            with other noise.
        knobs: How many knobs it has.
        path: Where a recorded one lies; empty for simulated ones.
    """

    generator: str
    seed: int
    knobs: int
    path: str = ""

    @property
    def name(self) -> str:
        """For people, and for what is drawn by name."""
        return f"{self.generator}-{self.seed}-{self.knobs}"

    def compiler(self) -> Compiler:
        """Draw or read the compiler; the latest ones are kept."""
        return load_recorded(Path(self.path)) if self.path else _drawn(self)


@functools.lru_cache(maxsize=4)
def _drawn(workload: Workload) -> Compiler:
    return make_compiler(workload.generator, seed=workload.seed, knob_count=workload.knobs)


def choose_workloads(
    generators: Sequence[str], count: int, *, seed: int, knobs: int, least_gain: float
) -> tuple[Workload, ...]:
    """Draw workloads, generator by generator.

    Args:
        generators: Names of generators.
        count: How many of each.
        seed: Which ones: two seeds share no workload.
        knobs: Knobs of each.
        least_gain: Workloads with a smaller attainable gain are left out, except null ones.

    Raises:
        UserInputError: A generator is unknown, no workload is asked for, or hardly any of a
            generator has this gain.
    """
    unknown = [name for name in generators if name not in generator_names()]
    if unknown:
        msg = f"No generator {unknown[0]!r}; there are {', '.join(generator_names())}."
        raise UserInputError(msg)
    _check_count(count, seed)
    return tuple(
        workload
        for name in dict.fromkeys(generators)
        for workload in _worthwhile(name, count, seed, knobs, least_gain)
    )


def recorded_workloads(
    paths: Sequence[Path], count: int, *, seed: int, least_gain: float
) -> tuple[Workload, ...]:
    """Workloads on recorded compilers; their noise and the samplers' seeds differ.

    Args:
        paths: What ``load_recorded`` reads.
        count: How many of each.
        seed: Which ones: two seeds share no workload.
        least_gain: The smallest attainable gain.

    Raises:
        UserInputError: A file cannot be read, or can gain less.
    """
    _check_count(count, seed)
    found = []
    for path in dict.fromkeys(path.expanduser().absolute() for path in paths):
        compiler = load_recorded(path)
        gain = compiler.attainable_gain()
        if gain < least_gain:
            msg = f"{path} can gain {gain:.3f}x at most; leave it out, or lower --least-gain."
            raise UserInputError(msg)
        found += [
            Workload(label(path), seed * SEEDS_A_RUN + number, len(compiler.knobs), str(path))
            for number in range(count)
        ]
    return tuple(found)


def _check_count(count: int, seed: int) -> None:
    if count < 1 or not 0 <= seed <= LARGEST_SEED:
        msg = (
            "A comparison needs at least one workload of each kind, and a seed of 0 to "
            f"{LARGEST_SEED:,}."
        )
        raise UserInputError(msg)


def _worthwhile(
    generator: str, count: int, seed: int, knobs: int, least_gain: float
) -> Iterator[Workload]:
    found = 0
    for number in range(TRIES_A_WORKLOAD * count):
        workload = Workload(generator, seed * SEEDS_A_RUN + number, knobs)
        if generator == NULL or workload.compiler().attainable_gain() >= least_gain:
            yield workload
            found += 1
        if found == count:
            return
    msg = (
        f"Only {found} of {TRIES_A_WORKLOAD * count} workloads of {generator} with {knobs} knobs "
        f"can gain {least_gain:g}x; lower --least-gain."
    )
    raise UserInputError(msg)
