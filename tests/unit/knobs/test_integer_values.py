"""Open integer knobs get values where their help says what the values mean."""

from __future__ import annotations

import dataclasses
import re

import pytest

from smart_tuner.knobs.database import KnobDatabase
from smart_tuner.knobs.integer_values import INTEGER_VALUES, with_integer_values
from smart_tuner.knobs.knob import Knob
from smart_tuner.knobs.read import bundled_database

# The words in which the compiler itself explains its knobs, cut to what the values stand in.
COMPILER_SAYS = {
    "peep:max": "0: compiler decides, 1: no peep, 2+: maximum fusion value.",
    "kgen:red_epilog_fusion:lvl": "1: pw fusion, 2: pw/reshape fusion.",
    "cask_fusion:num_tactics": "tactics to autotune.",
    "kgen:reduction_algo": "0: auto, 1: warp reduce, 2: block reduce, 4: tile reduce.",
    "kgen:topk_algo": "0: auto, 16: reduction, 32: sort, 64: multi-cta reduction.",
    "mha_fusion:v2:bmm1_acc": "0: auto, 1: FP16, 2: FP32.",
    "mha_fusion:v2:bmm2_acc": "0: auto, 1: FP16, 2: FP32.",
    "mha_fusion:v2:compute_groups": "0: auto, 1 or 2: user specified.",
    "mha_fusion:v2:mutex": "0: auto, 1: use, 2: don't use.",
    "mha_fusion:v2:war": "0: auto, 1: apply, 2: don't apply.",
    "mha_fusion:v2:ws:grid_strategy": "0: auto, 2: fewer blocks, 3: size-based selection.",
}
WITHOUT = {f"mha_fusion:v2:{name}_step" for name in ("noloop", "kv_loop", "q_loop")}


def only(name: str, help_text: str) -> Knob:
    knob = Knob(name, (), "0", help_text, "build route", is_open=True)
    return with_integer_values(KnobDatabase((knob,), "1"))[name]


def test_every_open_knob_of_the_bundled_list_has_values_or_a_help_that_names_none() -> None:
    found = with_integer_values(bundled_database())
    without = {knob.name for knob in found if knob.is_open and not knob.values}
    assert without == WITHOUT
    assert all(re.findall(r"\d+", found[name].help) == ["0"] for name in WITHOUT)
    assert {knob.name for knob in found if knob.is_open} == WITHOUT | INTEGER_VALUES.keys()


@pytest.mark.parametrize("name", INTEGER_VALUES)
def test_the_compilers_own_words_are_understood(name: str) -> None:
    knob = only(name, COMPILER_SAYS[name])
    assert knob.values == INTEGER_VALUES[name].values
    assert knob.is_open
    assert knob.choices[0] == "0"


@pytest.mark.parametrize("name", INTEGER_VALUES)
@pytest.mark.parametrize("help_text", ["", "0: auto, 1: something new, 7: other."])
def test_a_help_that_says_otherwise_gives_no_values(name: str, help_text: str) -> None:
    assert only(name, help_text).values == ()


def test_values_of_a_database_are_never_overruled() -> None:
    name = "kgen:topk_algo"
    listed = Knob(name, ("0", "16"), "0", COMPILER_SAYS[name], "build route")
    given = dataclasses.replace(listed, is_open=True)
    for knob in (listed, given):
        assert with_integer_values(KnobDatabase((knob,), "1"))[name] == knob
