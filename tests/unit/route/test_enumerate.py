from __future__ import annotations

from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_tuner.errors import UserInputError
from smart_tuner.knobs.database import KnobDatabase
from smart_tuner.knobs.knob import Knob
from smart_tuner.knobs.read import bundled_database
from smart_tuner.knobs.select import SpaceOptions, select_space
from smart_tuner.route.as_shipped import full_as_shipped, second_phase_as_shipped, trtexec_text
from smart_tuner.route.build_route import BuildRoute
from smart_tuner.route.enumerate import baseline_route, count_routes, enumerate_routes
from smart_tuner.route.expression import (
    Expression,
    ExpressionItem,
    expression_over,
    parse_expression,
)
from smart_tuner.route.mixed import (
    PositiveHit,
    count_second_phase,
    positive_hits,
    second_phase,
)

DATABASE = bundled_database()
EXAMPLE = "-conv_lowering=[on|off] -kgen:tiling=[0|1|2]"
SMALL = KnobDatabase(
    (
        Knob("a", ("on", "off"), "on"),
        Knob("b", ("0", "1", "2"), "2"),
        Knob("c", ("1", "2"), "0"),
        Knob("d", ("x", "y", "z"), "y"),
    ),
    "1",
)


@st.composite
def small_expressions(draw: st.DrawFn) -> Expression:
    items = []
    for knob in draw(st.permutations(SMALL.knobs)):
        is_variable = draw(st.booleans())
        values = st.lists(
            st.sampled_from(knob.choices),
            min_size=1,
            max_size=4 if is_variable else 1,
            unique=True,
        )
        items.append(ExpressionItem(knob, tuple(draw(values)), is_variable=is_variable))
    return Expression(tuple(items[: draw(st.integers(1, 4))]))


def texts(expression_text: str, mode: str) -> list[str]:
    expression = parse_expression(expression_text, DATABASE)
    routes = list(enumerate_routes(expression, DATABASE, mode))
    assert len(routes) == count_routes(expression, mode)
    return [trtexec_text(expression, route) for route in routes]


def small_texts(routes: object) -> list[str]:
    assert hasattr(routes, "__iter__")
    return [str(route) for route in routes]


class TestFast:
    def test_the_published_sweep_comes_in_its_order(self) -> None:
        assert texts(EXAMPLE, "fast") == [
            "-conv_lowering=on -kgen:tiling=2",
            "-conv_lowering=on -kgen:tiling=0",
            "-conv_lowering=on -kgen:tiling=1",
            "-conv_lowering=off -kgen:tiling=2",
        ]

    def test_a_default_that_is_not_listed_is_the_baseline(self) -> None:
        assert texts("-kgen:tiling=[1|0] -peep:max=[2]", "fast") == [
            "-kgen:tiling=2 -peep:max=0",
            "-kgen:tiling=2 -peep:max=2",
            "-kgen:tiling=1 -peep:max=0",
            "-kgen:tiling=0 -peep:max=0",
        ]

    def test_fixed_knobs_stay_in_every_route(self) -> None:
        assert texts("-kgen:tiling=1 -slice_elim=[on|off]", "fast") == [
            "-kgen:tiling=1 -slice_elim=on",
            "-kgen:tiling=1 -slice_elim=off",
        ]

    def test_one_pass_over_every_bounded_knob_has_206_routes(self) -> None:
        expression = expression_over(knob for knob in DATABASE if not knob.is_open)
        routes = list(enumerate_routes(expression, DATABASE, "fast"))
        assert count_routes(expression, "fast") == len(routes) == len(set(routes)) == 206
        assert routes[0] == BuildRoute()
        assert str(routes[1]) == "-kgen:sigmoid_approx=off"
        assert str(routes[-1]) == "-conv_use_long_w=off"

    def test_a_search_space_can_be_swept(self) -> None:
        space = select_space(DATABASE, SpaceOptions(only=("kgen:tiling",)))
        assert count_routes(expression_over(space.knobs), "fast") == 3


class TestFull:
    def test_the_last_knob_varies_fastest_in_listed_order(self) -> None:
        assert texts("-conv_lowering=[off|on] -kgen:tiling=[2|0]", "full") == [
            "-conv_lowering=off -kgen:tiling=2",
            "-conv_lowering=off -kgen:tiling=0",
            "-conv_lowering=on -kgen:tiling=2",
            "-conv_lowering=on -kgen:tiling=0",
        ]

    def test_a_baseline_outside_the_product_comes_first(self) -> None:
        assert texts("-conv_lowering=[on|off] -kgen:tiling=[1]", "full") == [
            "-conv_lowering=on -kgen:tiling=2",
            "-conv_lowering=on -kgen:tiling=1",
            "-conv_lowering=off -kgen:tiling=1",
        ]

    def test_trtexec_as_shipped_has_no_baseline(self) -> None:
        expression = parse_expression("-conv_lowering=[off] -kgen:tiling=[1]", DATABASE)
        shipped = list(full_as_shipped(expression, DATABASE))
        assert small_texts(shipped) == ["-conv_lowering=off -kgen:tiling=1"]

    def test_a_product_beyond_any_machine_is_counted_and_begun(self) -> None:
        expression = expression_over(knob for knob in DATABASE if not knob.is_open)
        assert count_routes(expression, "full") == 2**188 * 3**4 * 4**3
        routes = enumerate_routes(expression, DATABASE, "full")
        assert len(set(islice(routes, 20))) == 20


@given(small_expressions(), st.sampled_from(["fast", "full", "mixed"]))
def test_counts_are_right_no_route_repeats_and_the_baseline_is_there(
    expression: Expression, mode: str
) -> None:
    routes = list(enumerate_routes(expression, SMALL, mode))
    assert len(routes) == len(set(routes)) == count_routes(expression, mode)
    assert baseline_route(expression) in routes
    if mode == "full":
        assert set(enumerate_routes(expression, SMALL, "fast")) & set(routes) == {
            route
            for route in enumerate_routes(expression, SMALL, "fast")
            if route == baseline_route(expression) or is_in_product(expression, route)
        }


def is_in_product(expression: Expression, route: BuildRoute) -> bool:
    values = route.values
    return all(
        values.get(item.knob.name, item.knob.default) in item.values for item in expression.items
    )


@pytest.mark.parametrize("mode", ["", "Fast", "exhaustive"])
def test_an_unknown_mode_is_refused_at_the_call(mode: str) -> None:
    expression = parse_expression(EXAMPLE, DATABASE)
    with pytest.raises(UserInputError, match=r"Unknown search mode .* fast, full, mixed"):
        count_routes(expression, mode)
    with pytest.raises(UserInputError, match="Unknown search mode"):
        enumerate_routes(expression, DATABASE, mode)


@pytest.mark.parametrize(
    "knob",
    [Knob("b", ("0", "1"), "2"), Knob("b", ("0", "1", "2", "3"), "3")],
    ids=["less", "moved"],
)
def test_an_expression_over_another_database_is_refused(knob: Knob) -> None:
    other = KnobDatabase((Knob("a", ("on",), "on"), knob), "2")
    expression = parse_expression("-b=[0|1|2]", SMALL)
    if other["b"].default == "2":
        assert list(enumerate_routes(expression, other, "fast"))
    else:
        with pytest.raises(UserInputError, match="another knob database"):
            enumerate_routes(expression, other, "fast")
    with pytest.raises(UserInputError, match="another knob database"):
        enumerate_routes(parse_expression("-a=[off]", SMALL), other, "fast")
    with pytest.raises(UserInputError, match="Unknown knob: c"):
        enumerate_routes(parse_expression("-c=1", SMALL), other, "fast")


class TestMixed:
    EXPRESSION = parse_expression("-a=[on|off] -b=[0|1|2] -c=[1|2] -d=z", SMALL)

    def second(self, *hits: tuple[str, str, float], cap: int = 10) -> list[str]:
        positives = [PositiveHit(*hit) for hit in hits]
        routes = list(second_phase(self.EXPRESSION, SMALL, positives, cap))
        assert len(set(routes)) == len(routes)
        assert len(routes) == count_second_phase(self.EXPRESSION, positives, cap)
        return small_texts(routes)

    def test_the_first_phase_is_fast(self) -> None:
        first = list(enumerate_routes(self.EXPRESSION, SMALL, "mixed"))
        assert first == list(enumerate_routes(self.EXPRESSION, SMALL, "fast"))
        assert count_routes(self.EXPRESSION, "mixed") == 6

    def test_gains_become_hits_only_when_the_knob_paid(self) -> None:
        routes = list(enumerate_routes(self.EXPRESSION, SMALL, "fast"))
        measured = dict(zip(routes, [1.5, 1.0, 0.9, 1.02, float("nan"), 1.2], strict=True))
        del measured[routes[1]]
        assert positive_hits(self.EXPRESSION, measured) == (
            PositiveHit("a", "off", 1.2),
            PositiveHit("b", "0", 1.02),
        )
        assert positive_hits(self.EXPRESSION, measured, minimum_gain=1.1) == (
            PositiveHit("a", "off", 1.2),
        )

    def test_what_paid_is_combined_with_the_unlisted_default_in_reach(self) -> None:
        assert self.second(("c", "2", 1.1), ("a", "off", 1.2), ("b", "0", 1.3)) == [
            "-b=0 -c=2 -d=z",
            "-a=off -b=0 -d=z",
            "-a=off -b=0 -c=2 -d=z",
            "-a=off -c=2 -d=z",
        ]

    def test_two_values_of_one_knob_start_no_second_phase(self) -> None:
        assert self.second(("b", "0", 1.1), ("b", "1", 1.2)) == []
        assert self.second() == []

    def test_only_the_strongest_knobs_are_combined(self) -> None:
        hits = (("a", "off", 1.01), ("b", "0", 1.05), ("b", "1", 1.02), ("c", "1", 1.03))
        assert self.second(*hits, cap=2) == ["-b=0 -c=1 -d=z", "-b=1 -c=1 -d=z"]
        assert self.second(*hits, cap=1) == self.second(*hits, cap=0) == []

    def test_the_cap_is_ten_knobs(self) -> None:
        switches = [knob for knob in DATABASE if knob.values == ("on", "off")][:12]
        expression = expression_over(switches)
        hits = [PositiveHit(knob.name, knob.choices[1], 1.1) for knob in switches]
        assert count_second_phase(expression, hits) == 2**10 - 1 - 10
        assert count_second_phase(expression, hits, cap=12) == 2**12 - 1 - 12

    @pytest.mark.parametrize("hit", [("a", "on"), ("a", "x"), ("d", "z"), ("nowhere", "1")])
    def test_a_hit_that_the_expression_does_not_vary_is_refused(
        self, hit: tuple[str, str]
    ) -> None:
        with pytest.raises(UserInputError, match="no value that the expression varies"):
            second_phase(self.EXPRESSION, SMALL, [PositiveHit(*hit, 1.1)])

    @given(small_expressions(), st.data())
    def test_no_route_of_the_first_phase_comes_again(
        self, expression: Expression, data: st.DataObject
    ) -> None:
        first = list(enumerate_routes(expression, SMALL, "fast"))
        gains = {route: data.draw(st.floats(0.5, 2)) for route in first}
        hits = positive_hits(expression, gains)
        routes = list(second_phase(expression, SMALL, hits))
        assert not set(routes) & set(first)
        assert len(routes) == len(set(routes)) == count_second_phase(expression, hits)

    def test_trtexec_as_shipped_takes_whole_lists_and_known_routes(self) -> None:
        hits = [PositiveHit("b", "0", 1.1), PositiveHit("b", "1", 1.1)]
        assert small_texts(second_phase_as_shipped(self.EXPRESSION, SMALL, hits)) == [
            "-b=0 -d=z",
            "-b=1 -d=z",
            "-d=z",
        ]
        assert list(second_phase_as_shipped(self.EXPRESSION, SMALL, hits[:1])) == []
