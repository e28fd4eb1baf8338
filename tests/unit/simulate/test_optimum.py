from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smart_tuner.knobs.knob import Knob
from smart_tuner.simulate.compiler import SimulatedCompiler
from smart_tuner.simulate.effects import Failure, Gate, PairEffect, ValueEffect
from smart_tuner.simulate.generators import generator_names, make_compiler

if TYPE_CHECKING:
    from collections.abc import Iterator

NAMES = ("a", "a:b", "a:b:c", "d", "e", "f")
SETTINGS = tuple((name, value) for name in NAMES for value in ("1", "2"))


@st.composite
def compilers(draw: st.DrawFn) -> SimulatedCompiler:
    """Six knobs of three values with everything that may interact."""
    log = st.floats(-0.3, 0.3).map(lambda size: round(size, 3))
    effects = []
    for setting in SETTINGS:
        if draw(st.booleans()):
            failure = draw(st.sampled_from([None, None, None, Failure.ABORT]))
            loss = draw(st.sampled_from([0.0, 0.0, 3e-4, 5e-4, 2e-3]))
            effects.append(ValueEffect(*setting, draw(log), loss, failure=failure))
    pairs = []
    for first, second in draw(st.lists(st.tuples(*[st.sampled_from(SETTINGS)] * 2), max_size=8)):
        if first[0] != second[0]:
            failure = draw(st.sampled_from([None, Failure.BUILD_ERROR]))
            pairs.append(PairEffect(first, second, draw(log), failure))
    gates = []
    for child, parent in (("a:b", "a"), ("a:b:c", "a:b")):
        if draw(st.booleans()):
            gates.append(Gate(child, parent, draw(st.sampled_from(["0", "1", "2"]))))
    knobs = tuple(Knob(name, ("0", "1", "2"), "0") for name in NAMES)
    return SimulatedCompiler(knobs, effects=tuple(effects), pairs=tuple(pairs), gates=tuple(gates))


def all_routes(compiler: SimulatedCompiler) -> Iterator[dict[str, str]]:
    for values in itertools.product(*(knob.choices for knob in compiler.knobs)):
        yield dict(zip((knob.name for knob in compiler.knobs), values, strict=True))


@settings(max_examples=25, deadline=None)
@given(compilers())
def test_it_is_what_trying_everything_finds(compiler: SimulatedCompiler) -> None:
    optimum = compiler.optimum()
    assert optimum.is_exact
    assert compiler.is_feasible(optimum.values)
    best = min(
        compiler.latency_ms(values)
        for values in all_routes(compiler)
        if compiler.is_feasible(values)
    )
    assert compiler.latency_ms(optimum.values) == pytest.approx(best, rel=1e-9)
    assert compiler.attainable_gain() == pytest.approx(compiler.base_latency_ms / best)


def greedy(compiler: SimulatedCompiler) -> float:
    """Add the best single change until none helps; returns the latency."""
    values: dict[str, str] = {}
    best = compiler.latency_ms(values)
    while True:
        tried = ({**values, knob.name: value} for knob in compiler.knobs for value in knob.choices)
        found = min(
            (
                (compiler.latency_ms(route), sorted(route.items()))
                for route in tried
                if compiler.is_feasible(route)
            ),
        )
        if found[0] >= best:
            return best
        best, values = found[0], dict(found[1])


@pytest.mark.parametrize("name", generator_names())
@pytest.mark.parametrize("seed", [0, 1])
def test_it_is_feasible_and_no_worse_than_greedy(name: str, seed: int) -> None:
    compiler = make_compiler(name, seed=seed, knob_count=60)
    optimum = compiler.optimum()
    assert compiler.is_feasible(optimum.values)
    assert compiler.latency_ms(optimum.values) <= greedy(compiler) * (1 + 1e-12)
    assert compiler.latency_ms(optimum.values) == pytest.approx(
        compiler.base_latency_ms * math.exp(optimum.log_latency)
    )
    assert compiler.attainable_gain() >= 1


def test_tangled_compilers_are_searched_and_it_says_so() -> None:
    knobs = tuple(Knob(f"k{number}", ("0", "1"), "0") for number in range(24))
    effects = tuple(ValueEffect(knob.name, "1", log_latency=-0.1) for knob in knobs)
    pairs = tuple(
        PairEffect((first.name, "1"), (second.name, "1"), log_latency=0.045)
        for first, second in itertools.combinations(knobs, 2)
    )
    optimum = SimulatedCompiler(knobs, effects=effects, pairs=pairs).optimum()
    assert not optimum.is_exact
    # By symmetry only their number counts: n * -0.1 + n (n - 1) / 2 * 0.045.
    assert optimum.log_latency == pytest.approx(
        min(n * -0.1 + n * (n - 1) / 2 * 0.045 for n in range(25))
    )


def test_the_whole_budget_may_be_spent() -> None:
    knobs = tuple(Knob(name, ("0", "1"), "0") for name in "abc")
    effects = tuple(ValueEffect(name, "1", log_latency=-0.1, loss=1e-4) for name in "abc")
    compiler = SimulatedCompiler(knobs, epsilon=1e-4 + 1e-4 + 1e-4, effects=effects)
    assert set(compiler.optimum().values) == set("abc")
    assert not SimulatedCompiler(knobs, epsilon=0.0, effects=effects).optimum().values
