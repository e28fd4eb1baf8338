from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from smart_tuner.errors import UserInputError
from smart_tuner.knobs.database import KnobDatabase
from smart_tuner.knobs.knob import Knob
from smart_tuner.knobs.read import bundled_database
from smart_tuner.knobs.select import (
    FROZEN,
    IDLE,
    NOT_NAMED,
    OPEN,
    OPT_IN,
    SETTLED,
    SpaceOptions,
    count_left_out,
    left_out,
    select_space,
)

DATABASE = KnobDatabase(
    (
        Knob("fuse:gelu", ("on", "off"), "on"),
        Knob("fuse:conv", ("on", "off"), "on", idle="no convolution"),
        Knob("level", ("0", "1", "2"), "1"),
        Knob("threads", (), "0", is_open=True),
        Knob("mask", ("on", "off"), "off", opt_in="changes the output"),
        Knob("version", ("7",), "7"),
    ),
    "1",
)


def names(**options: Any) -> list[str]:
    return [knob.name for knob in select_space(DATABASE, SpaceOptions(**options)).knobs]


def test_what_cannot_be_searched_is_left_out_with_its_reason() -> None:
    assert names() == ["fuse:gelu", "level"]
    assert left_out(DATABASE, SpaceOptions()) == {
        "fuse:conv": IDLE,
        "threads": OPEN,
        "mask": OPT_IN,
        "version": SETTLED,
    }


def test_each_reason_can_be_lifted_but_the_last() -> None:
    space = names(ask=("mask",), include_idle=True, values={"threads": ("2", "4")})
    assert space == ["fuse:gelu", "fuse:conv", "level", "threads", "mask"]


def test_patterns_choose_and_freeze() -> None:
    assert names(only=("fuse:*",)) == ["fuse:gelu"]
    assert names(only=("-fuse:*", "level"), freeze=("f*",)) == ["level"]
    options = SpaceOptions(only=("fuse:*",), freeze=("*gelu",), include_idle=True)
    assert left_out(DATABASE, options)["level"] == NOT_NAMED
    assert left_out(DATABASE, options)["fuse:gelu"] == FROZEN


def test_naming_an_opt_in_knob_is_not_asking_for_it() -> None:
    assert names(only=("mask", "level")) == ["level"]


def test_given_values_replace_the_listed_ones_and_keep_the_default() -> None:
    options = SpaceOptions(values={"-level": ("2",), "threads": ("2", "4")})
    space = select_space(DATABASE, options)
    assert space.choices["level"] == ("1", "2")
    assert space.choices["threads"] == ("0", "2", "4")
    assert names(values={"level": ("1",)}) == ["fuse:gelu"]


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"only": ("fuse:gel",)}, "No knob matches 'fuse:gel'. Did you mean fuse:gelu"),
        ({"freeze": ("zzz*",)}, "No knob matches .*smart-tuner knobs"),
        ({"ask": ("masks",)}, "Unknown knob: masks .*mean mask"),
        ({"values": {"thread": ("1",)}}, "Unknown knob: thread .*mean threads"),
        ({"values": {"level": ("3",)}}, "level cannot take the value '3': it takes 1, 0, 2"),
        ({"values": {"threads": ("int",)}}, "threads cannot take .*: give numbers"),
        ({"values": {"threads": ("1 2",)}}, "threads cannot take .*white space"),
        ({"values": {"threads": ("1", "1")}}, "threads is given the same value twice"),
        ({"values": {"threads": ("1", "\uff11")}}, "threads is given the same value twice"),
        ({"freeze": ("*",)}, "no knob to search: 6 knobs frozen"),
    ],
)
def test_wrong_options_are_refused_with_the_remedy(options: Any, fault: str) -> None:
    with pytest.raises(UserInputError, match=fault):
        names(**options)


def test_the_reasons_are_counted_for_people() -> None:
    reasons = left_out(bundled_database(), SpaceOptions(freeze=("tactic:sparse",)))
    assert Counter(reasons.values()) == {OPEN: 14, OPT_IN: 6, FROZEN: 1}
    assert count_left_out(reasons) == (
        "14 knobs open and without given values",
        "6 knobs changing what the network computes, searched only when asked for",
        "1 knob frozen",
    )
    assert len(select_space(bundled_database(), SpaceOptions()).knobs) == 189
