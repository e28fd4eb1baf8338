from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_tuner.errors import UserInputError
from smart_tuner.knobs.read import bundled_database
from smart_tuner.knobs.text import value_fault
from smart_tuner.route.build_route import BuildRoute
from smart_tuner.route.parse import parse_route

if TYPE_CHECKING:
    from smart_tuner.knobs.knob import Knob

DATABASE = bundled_database()
DEFAULTS = {knob.name: knob.default for knob in DATABASE}
WORDS = st.text(min_size=1, max_size=6).filter(
    lambda text: not value_fault(text) and text not in ("int", "int32_t")
)


def value_of(knob: Knob) -> st.SearchStrategy[tuple[str, str]]:
    values = WORDS if knob.is_open else st.sampled_from(knob.choices)
    return values.map(lambda value: (knob.name, value))


ROUTES = st.lists(st.sampled_from(DATABASE.knobs).flatmap(value_of)).map(
    lambda pairs: BuildRoute.of(dict(pairs), DEFAULTS)
)


@given(ROUTES)
def test_every_route_comes_back_from_its_text(route: BuildRoute) -> None:
    assert parse_route(str(route), DATABASE) == route


def test_order_spacing_and_defaults_do_not_matter() -> None:
    text = "\t-slice_elim=on -kgen:tiling=0\r\n-conv_lowering=off "
    assert str(parse_route(text, DATABASE)) == "-conv_lowering=off -kgen:tiling=0"


@pytest.mark.parametrize("text", ["", " \n", "-kgen:tiling=2"])
def test_nothing_but_defaults_is_the_default_route(text: str) -> None:
    assert parse_route(text, DATABASE) == BuildRoute()


def test_open_knobs_take_any_text() -> None:
    assert parse_route("-peep:max=1=x", DATABASE).values == {"peep:max": "1=x"}


@pytest.mark.parametrize(
    ("text", "cause", "remedy"),
    [
        ("off", "Invalid expression (no '='): off", "-knob=value"),
        ("kgen:tiling=0", "Unknown knob: kgen:tiling", "begins with a dash"),
        ("-kgen:tilings=0", "Unknown knob: -kgen:tilings", "mean -kgen:tiling"),
        ("-kgen:tiling=7", "Invalid value for knob: -kgen:tiling=7", "takes 2, 0, 1"),
        ("-kgen:tiling=", "Invalid value for knob: -kgen:tiling=", "The value is empty"),
        ("-kgen:tiling=[0|1]", "Invalid value for knob: -kgen:tiling=[0|1]", "one value"),
        ("-peep:max=[1]", "Invalid value for knob: -peep:max=[1]", "one value"),
        ("-peep:max=int", "Unbounded expression 'int' not allowed", "Write the number"),
        ("-peep:max=\x1b[2J", "Invalid value for knob: -peep:max=?[2J", "one value"),
        ("-peep:max=1 -peep:max=1", "Duplicate knob in route: -peep:max", "one value"),
    ],
)
def test_faults_are_refused_with_cause_and_remedy(text: str, cause: str, remedy: str) -> None:
    with pytest.raises(UserInputError) as caught:
        parse_route(text, DATABASE)
    assert str(caught.value).startswith(f"Cannot parse the route: {cause}")
    assert remedy in str(caught.value)


@given(
    st.text()
    | st.lists(st.sampled_from(["-kgen:tiling", "-peep:max", "=", "[", "]", "0", " "])).map(
        "".join
    )
)
def test_parsing_raises_nothing_but_user_errors(text: str) -> None:
    fault = ""
    try:
        route = parse_route(text, DATABASE)
    except UserInputError as error:
        fault = str(error)
    else:
        assert parse_route(str(route), DATABASE) == route
    assert "\n" not in fault
