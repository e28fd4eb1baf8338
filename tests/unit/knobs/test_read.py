from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_tuner.errors import UserInputError
from smart_tuner.knobs.check import MAX_KNOBS, MAX_VALUES
from smart_tuner.knobs.database import KnobDatabase
from smart_tuner.knobs.knob import Knob
from smart_tuner.knobs.read import (
    MAX_CHARACTERS,
    bundled_database,
    database_digest,
    read_database,
    write_database,
)
from smart_tuner.knobs.text import MAX_NAME_CHARACTERS, comparison_form, value_fault

GOLDEN = Path(__file__).parents[2] / "golden"
WORDS = st.text(min_size=1, max_size=8).filter(lambda text: not value_fault(text))
NAMES = WORDS.filter(lambda text: "=" not in text and not text.startswith("-"))
PROSE = st.text("abc dé:", max_size=12).map(lambda text: " ".join(text.split()))


@st.composite
def knob_databases(draw: st.DrawFn) -> KnobDatabase:
    names = draw(st.lists(NAMES, min_size=1, max_size=4, unique_by=comparison_form))
    knobs = []
    for name in names:
        texts = draw(st.lists(WORDS, min_size=1, max_size=4, unique_by=comparison_form))
        values = tuple(texts[1:] if draw(st.booleans()) else texts)
        knobs.append(
            Knob(
                name,
                values,
                texts[0],
                help=draw(PROSE),
                source=draw(PROSE),
                is_open=draw(st.booleans()),
                opt_in=draw(PROSE),
                idle=draw(PROSE),
            )
        )
    return KnobDatabase(tuple(knobs), draw(PROSE))


def tensorrt_text(*options: object, **fields: object) -> str:
    return json.dumps({"tuner_version": "1", "tuner_options": list(options)} | fields)


def option(name: str, values: str, default: object = "on", **fields: object) -> dict[str, object]:
    return {
        "option": f"-{name}",
        "allowed_values": f"-{name}={values}",
        "default_value": default,
    } | fields


def own_text(**fields: Any) -> str:
    knob = {"name": "k", "values": ["a", "b"], "default": "a"}
    return json.dumps({"schema_version": 1, "tuner_version": "t", "knobs": [knob]} | fields)


class TestBundledDatabase:
    def test_counts_are_those_of_the_real_list(self) -> None:
        database = bundled_database()
        bounded = [knob for knob in database if not knob.is_open]
        switches = [knob for knob in bounded if knob.values == ("on", "off")]
        assert database.tuner_version == "2.19.45"
        assert len(database) == 209
        assert len(switches) == 188
        assert Counter(knob.default for knob in switches) == {"on": 146, "off": 42}
        assert len(bounded) - len(switches) == 7
        assert len(database) - len(bounded) == 14
        assert sum(value != knob.default for knob in bounded for value in knob.values) == 205

    def test_names_have_no_dash_and_values_stay_text(self) -> None:
        tiling = bundled_database()["kgen:tiling"]
        assert tiling.values == ("0", "1", "2")
        assert tiling.choices == ("2", "0", "1")
        assert tiling.source == "build route"
        assert not tiling.opt_in

    def test_open_knobs_have_no_values_and_take_any(self) -> None:
        maximum = bundled_database()["peep:max"]
        assert maximum.is_open
        assert maximum.values == ()
        assert maximum.default == "0"
        assert maximum.allows("17")

    def test_knobs_that_change_the_computation_are_opt_in(self) -> None:
        assert {knob.name for knob in bundled_database() if knob.opt_in} == {
            "mha_fusion:v2:causal_mask",
            "mha_fusion:v2:skip_causal",
            "slice_elim_copy:ignore_io_check",
            "custom_layer_transform:noop",
            "kgen:lower_gelu",
            "kgen:lower_gelu_erf",
        }


class TestTensorRtForm:
    def test_odd_entries_are_read_as_trtexec_reads_them(self) -> None:
        text = (GOLDEN / "all_build_routes-odd.json").read_text(encoding="utf-8")
        database = read_database(text)
        assert database.tuner_version == "unknown"
        assert {knob.name: (knob.values, knob.default, knob.is_open) for knob in database} == {
            "listed": (("on", "off"), "on", False),
            "typed": ((), "3", True),
            "ranged": ((), "0", True),
            "outside": (("1", "2"), "0", False),
            "nothing": ((), "x", True),
            "dashless": (("a", "b"), "", False),
        }
        assert database["listed"].help == "Two lines."
        assert database["outside"].choices == ("0", "1", "2")

    @pytest.mark.parametrize(
        ("name", "sentence"),
        [
            ("some:mask", "Use causal mask."),
            ("some:skip", "Tile skipping. 1: UpperLeft casual mask"),
            ("some:check", "Ignore it. User must ensure that there is none."),
            ("some:lowering", "Lower them. Required for functionality."),
            ("some:noop", "Insert casts (testing)."),
            ("kgen:lower_gelu", ""),
        ],
    )
    def test_opt_in_comes_from_the_help_or_the_name(self, name: str, sentence: str) -> None:
        text = tensorrt_text(option(name, "[on|off]", help=sentence))
        assert sentence in read_database(text)[name].opt_in
        assert read_database(text)[name].opt_in

    def test_help_cannot_command_a_terminal(self) -> None:
        text = tensorrt_text(option("k", "[on|off]", help="\x1b[2Jgone\ud800"))
        assert read_database(text)["k"].help == "?[2Jgone?"

    @pytest.mark.parametrize(
        ("text", "fault"),
        [
            ("", "line 1, column 1: no JSON"),
            ("{\n 'a'", "line 2, column 2: no JSON"),
            ("[" * 200_000, "nested too deep"),
            ("1" * 10_000, "a number is too long"),
            ("[]", "neither tuner_options"),
            ("{}", "neither tuner_options"),
            ('{"tuner_options": 3}', "tuner_options: it is missing or no list"),
            ('{"tuner_options": []}', "holds no knobs"),
            (tensorrt_text("x", {"help": "y"}), "holds no knobs"),
            (tensorrt_text({"option": 3}), "option is no text"),
            (tensorrt_text(option("k", "[1|2]", 1)), r"\[0\] \(-k\): default_value is no text"),
            (tensorrt_text(option("k", "[on|on ]")), "'on' is listed twice"),
            (tensorrt_text(option("k", "[é|e\u0301]", "é")), "listed twice, or looks like"),
            (tensorrt_text(option("k", "[1|2]", "\uff11")), "'\uff11' is listed twice, or looks"),
            (tensorrt_text(option("k", "[a b|c]")), "holds white space"),
            (tensorrt_text(option("k", "[a|b]", "x|y")), "which expressions use"),
            (tensorrt_text(option("a b", "[on|off]")), r"\[0\] \(-a b\): the name holds white"),
            (tensorrt_text(option("a=b", "[on|off]")), "the name holds '='"),
            (tensorrt_text(option("-k", "[on|off]")), "second dash"),
            (tensorrt_text({"option": "-"}), "the name is empty"),
            (tensorrt_text({"option": "-\ud800"}), "control character"),
            (tensorrt_text(option("n" * (MAX_NAME_CHARACTERS + 1), "int")), "name is longer"),
            (
                tensorrt_text(option("k", "int"), option("l", "int"), option("k", "int")),
                r"\[2\] \(-k\): the knob clashes with tuner_options\[0\] \(-k\)",
            ),
            (
                tensorrt_text(option("k", "[" + "|".join(map(str, range(MAX_VALUES + 1))) + "]")),
                "more than 1000 values",
            ),
            (tensorrt_text(*[0] * (MAX_KNOBS + 1)), "more than 10000 knobs"),
            (" " * (MAX_CHARACTERS + 1), "longer than"),
        ],
        ids=lambda text: ascii(text[:40]),
    )
    def test_faults_name_their_place_in_one_line(self, text: str, fault: str) -> None:
        with pytest.raises(UserInputError, match=fault) as caught:
            read_database(text)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 400


class TestOwnForm:
    def test_the_first_schema_stays_readable(self) -> None:
        database = read_database((GOLDEN / "knob_database-v1.json").read_text(encoding="utf-8"))
        assert database["optimizer:GeluFusion"] == Knob(
            "optimizer:GeluFusion",
            ("on", "off"),
            "on",
            "Fuses the Gelu pattern.",
            "optimizer",
            idle="no pattern in this model",
        )
        assert database["session:intra_op_num_threads"].is_open

    def test_the_bundled_database_comes_back(self) -> None:
        database = bundled_database()
        assert read_database(write_database(database)) == database

    @given(knob_databases())
    def test_every_database_comes_back(self, database: KnobDatabase) -> None:
        again = read_database(write_database(database))
        assert again == database
        assert database_digest(again) == database_digest(database)

    def test_equal_looking_texts_stay_apart(self) -> None:
        knob = Knob("k", ("1", "1.0", "True", "true", "None", "nan"), "1")
        database = KnobDatabase((knob,), "t")
        assert read_database(write_database(database)) == database

    @pytest.mark.parametrize(
        ("text", "fault"),
        [
            (own_text(schema_version=2), "schema_version: this version .* reads 1"),
            (own_text(schema_version=True), "schema_version"),
            (own_text(knobs=[]), "knobs: it is missing, no list, or empty"),
            (own_text(knobs=[3]), r"knobs\[0\]: it is no object"),
            (own_text(knobs=[{"name": "k", "colour": 1}]), "unknown field 'colour'"),
            (own_text(knobs=[{"values": []}]), r"knobs\[0\], name: it is missing"),
            (own_text(knobs=[{"name": "k", "values": [1, True]}]), r'values: .* as text, "1"'),
            (own_text(knobs=[{"name": "k", "values": [None, "x"]}]), "values: "),
            (own_text(knobs=[{"name": "k", "values": "ab"}]), "values: it is missing or no list"),
            (own_text(knobs=[{"name": "k", "values": ["a"]}]), "default: it is missing"),
            (
                own_text(knobs=[{"name": "k", "values": ["a"], "default": "a", "is_open": 1}]),
                "is_open: it is neither",
            ),
            (own_text(knobs=[{"name": "k", "values": [""], "default": "a"}]), "value is empty"),
            (own_text(knobs=[0] * (MAX_KNOBS + 1)), "more than 10000 knobs"),
        ],
    )
    def test_faults_name_their_place(self, text: str, fault: str) -> None:
        with pytest.raises(UserInputError, match=fault):
            read_database(text)


class TestDigest:
    DATABASE = KnobDatabase((Knob("a", ("1", "2"), "1"), Knob("b", ("x",), "y")), "1")

    def same(self, *knobs: Knob) -> bool:
        return database_digest(KnobDatabase(knobs, "2")) == database_digest(self.DATABASE)

    def test_it_is_stable(self) -> None:
        digest = "d8ae63a829cbd1c2da531dc494844d14b1b610dd6e88d5a2477a01447fc55000"
        assert database_digest(bundled_database()) == digest

    def test_what_changes_no_study_does_not_count(self) -> None:
        first, second = self.DATABASE.knobs
        assert self.same(second, replace(first, help="Better.", idle="yes", opt_in="risky"))

    def test_what_changes_a_study_counts(self) -> None:
        first, second = self.DATABASE.knobs
        assert not self.same(first)
        assert not self.same(replace(first, name="c"), second)
        assert not self.same(replace(first, default="2"), second)
        assert not self.same(replace(first, values=("1", "2", "3")), second)
        assert not self.same(first, replace(second, values=("x", "z")))
        assert not self.same(first, replace(second, is_open=True))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["option", "allowed_values", "default_value", "help", "name", "values", "default"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(
    st.fixed_dictionaries(
        {}, optional={"tuner_options": JSON, "knobs": JSON, "schema_version": st.just(1) | JSON}
    ).map(json.dumps)
    | st.text()
)
def test_reading_raises_nothing_but_user_errors(text: str) -> None:
    fault = ""
    try:
        database = read_database(text)
    except UserInputError as error:
        fault = str(error)
    else:
        assert len(database) > 0
    assert "\n" not in fault
