from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_tuner.errors import UserInputError
from smart_tuner.model.names import format_name, listed, option_text, split_items

ANY_NAME = st.text(min_size=1, max_size=12) | st.text("ab:,'\"\\ x/\n", min_size=1, max_size=12)


@given(st.lists(st.tuples(ANY_NAME, st.from_regex(r"[0-9x]{1,8}", fullmatch=True)), min_size=1))
def test_what_format_writes_split_reads(items: list[tuple[str, str]]) -> None:
    text = ",".join(f"{format_name(name)}:{value}" for name, value in items)
    assert split_items(text, "name:value") == items


@given(ANY_NAME, ANY_NAME)
def test_names_and_values_can_both_be_quoted(name: str, path: str) -> None:
    def quote(text: str) -> str:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

    text = f"{quote(name)}:{quote(path)}, plain:{quote(path)}"
    assert split_items(text, "name:path") == [(name, path), ("plain", path)]


@given(st.text("ab:,'\"\\ 1", max_size=14))
def test_any_text_is_read_or_refused_in_one_line(text: str) -> None:
    try:
        items = split_items(text, "name:value")
    except UserInputError as error:
        assert "\n" not in str(error)  # noqa: PT017
    else:
        assert items
        assert all(name for name, _ in items)


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("a:1", [("a", "1")]),
        ("images:0:1x3", [("images:0", "1x3")]),
        (" a : 1 , b:2 ", [("a", " 1 "), ("b", "2 ")]),
        ("'a,b':1,\"c'd\":2", [("a,b", "1"), ("c'd", "2")]),
        (r"'a\'b\\':1", [("a'b\\", "1")]),
        ("a'b\"c:1", [("a'b\"c", "1")]),
        ("x:'/d/a,b:c.bin',y:z.bin", [("x", "/d/a,b:c.bin"), ("y", "z.bin")]),
        ("'x:y':/d/a:b.bin", [("x:y", "/d/a:b.bin")]),
    ],
)
def test_the_forms_that_are_documented(text: str, items: list[tuple[str, str]]) -> None:
    assert [(n, v.strip()) for n, v in split_items(text, "f")] == [
        (n, v.strip()) for n, v in items
    ]


@pytest.mark.parametrize(
    "text", ["", " ", "a", ":1", "'a:1", "'a'1:2", "'':1", "a:1,", "a:1,,b:2"]
)
def test_other_forms_are_refused(text: str) -> None:
    with pytest.raises(UserInputError, match=r"name:value|ends with a comma"):
        split_items(text, "name:value")


def test_two_fields_are_taken_from_the_end() -> None:
    assert split_items("images:0:-1:1.5,'a:b':0:9", "f", fields=2) == [
        ("images:0", "-1:1.5"),
        ("a:b", "0:9"),
    ]


def test_an_option_can_be_pasted_into_a_shell() -> None:
    text = option_text("--shapes", [f"{format_name('a b,$HOME')}:1x2"])
    assert shlex.split(text) == ["--shapes", "'a b,$HOME':1x2"]


def test_long_lists_are_cut() -> None:
    assert listed([]) == "none"
    assert listed(["a", "b"]) == "'a', 'b'"
    assert listed(["a", "b", "c"], 2) == "'a', 'b' and 1 more"
