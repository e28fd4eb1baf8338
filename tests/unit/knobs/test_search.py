from __future__ import annotations

from smart_tuner.knobs.database import KnobDatabase
from smart_tuner.knobs.knob import Knob
from smart_tuner.knobs.read import bundled_database
from smart_tuner.knobs.search import search_knobs

DATABASE = KnobDatabase(
    (
        Knob("arena", ("on",), "on", "Memory for Gelu and others.", "session"),
        Knob("match_gelu", ("on",), "on", "Finds it.", "optimizer"),
        Knob("gelu", ("on",), "on", "", "optimizer"),
    ),
    "1",
)


def names(*words: str) -> list[str]:
    return [knob.name for knob in search_knobs(DATABASE, words)]


def test_the_exact_name_comes_first_then_names_then_other_text() -> None:
    assert names("GELU") == ["gelu", "match_gelu", "arena"]


def test_every_word_must_occur_somewhere() -> None:
    assert names("gelu", "optimizer") == ["match_gelu", "gelu"]
    assert names("gelu session") == ["arena"]
    assert names("gelu", "nowhere") == []


def test_no_words_find_everything_in_order() -> None:
    assert names() == ["arena", "match_gelu", "gelu"]
    assert names("  ") == names()


def test_a_name_may_be_pasted_with_its_dash() -> None:
    found = search_knobs(bundled_database(), ["-kgen:tiling"])
    assert found[0].name == "kgen:tiling"
