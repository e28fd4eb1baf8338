from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_tuner.errors import UserInputError
from smart_tuner.knobs.knob import Knob
from smart_tuner.knobs.read import bundled_database
from smart_tuner.knobs.text import comparison_form, value_fault
from smart_tuner.route.expression import (
    Expression,
    ExpressionItem,
    expression_over,
    parse_expression,
    read_expression_file,
)

GOLDEN = Path(__file__).parents[2] / "golden"
DATABASE = bundled_database()
EXAMPLE = "-conv_lowering=[on|off] -kgen:tiling=[0|1|2]"
WORDS = st.text(min_size=1, max_size=6).filter(
    lambda text: not value_fault(text) and text not in ("int", "int32_t")
)


@st.composite
def expressions(draw: st.DrawFn) -> Expression:
    items = []
    for knob in draw(st.lists(st.sampled_from(DATABASE.knobs), min_size=1, unique=True)):
        values = WORDS if knob.is_open else st.sampled_from(knob.choices)
        is_variable = draw(st.booleans())
        most = None if is_variable else 1
        texts = draw(st.lists(values, min_size=1, max_size=most, unique_by=comparison_form))
        items.append(ExpressionItem(knob, tuple(texts), is_variable=is_variable))
    return Expression(tuple(items))


def items_of(text: str) -> list[tuple[str, tuple[str, ...], bool]]:
    expression = parse_expression(text, DATABASE)
    return [(item.knob.name, item.values, item.is_variable) for item in expression.items]


def test_brackets_make_a_knob_variable() -> None:
    assert items_of("-conv_lowering=[on|off]  -kgen:tiling=1 -slice_elim=[on]") == [
        ("conv_lowering", ("on", "off"), True),
        ("kgen:tiling", ("1",), False),
        ("slice_elim", ("on",), True),
    ]


def test_an_expression_writes_itself() -> None:
    text = f"{EXAMPLE} -slice_elim=on -copy_ppg=[off] -peep:max=[1|2]"
    assert str(parse_expression(text, DATABASE)) == text


@given(expressions())
def test_every_expression_comes_back_from_its_text(expression: Expression) -> None:
    assert parse_expression(str(expression), DATABASE) == expression


def test_white_space_of_any_kind_separates_and_is_trimmed_in_lists() -> None:
    text = "\t-conv_lowering=[ on |\toff]\r\n-kgen:tiling=[0\n|1|2]\r -slice_elim=on\u00a0"
    assert str(parse_expression(text, DATABASE)) == f"{EXAMPLE} -slice_elim=on"


def test_open_knobs_take_explicit_lists_and_values() -> None:
    assert items_of("-cask_fusion:num_tactics=[10|20] -peep:max=7") == [
        ("cask_fusion:num_tactics", ("10", "20"), True),
        ("peep:max", ("7",), False),
    ]


@pytest.mark.parametrize(
    ("text", "cause", "remedy"),
    [
        ("", "Empty input", "Write -knob="),
        ("  \t", "No expressions found", "Write -knob="),
        ("-conv_lowering", "Invalid expression (no '='): -conv_lowering", "-knob=value"),
        ("# comment", "Invalid expression (no '='): #", "-knob=value"),
        ("-conv_lowring=on", "Unknown knob: -conv_lowring", "mean -conv_lowering"),
        ("conv_lowering=on", "Unknown knob: conv_lowering", "begins with a dash"),
        ("--onnx=model.onnx", "Unknown knob: --onnx", "smart-tuner knobs"),
        ("=on", "Unknown knob: ", "begins with a dash"),
        (
            "-slice_elim=x[on]",
            "Invalid expression format (unexpected content before '['): -slice_elim=x[on]",
            "nothing else",
        ),
        (
            "-slice_elim=[on]x",
            "Invalid expression format (unexpected content after ']'): -slice_elim=[on]x",
            "Put a space",
        ),
        ("-slice_elim=[[on]|off]", "unexpected content after ']'", "Put a space"),
        ("-slice_elim=[on]-copy_ppg=on", "unexpected content after ']'", "Put a space"),
        ("-peep:max=[1|2|...]", "Unbounded expression not allowed: -peep:max=[1|2", "one by one"),
        ("-slice_elim=[]", "Empty value list in expression: -slice_elim=[]", "Write -knob="),
        ("-slice_elim=[ | ]", "Empty value list in expression", "Write -knob="),
        (
            "-slice_elim=[on|on]",
            "Duplicate value 'on' in expression: -slice_elim=[on|on]",
            "value once",
        ),
        ("-kgen:tiling=[0|7]", "Invalid value(s) for knob: -kgen:tiling", "takes 2, 0, 1"),
        ("-slice_elim=[on|o ff]", "Invalid value(s) for knob: -slice_elim", "white space"),
        ("-kgen:tiling=7", "Invalid value for knob: -kgen:tiling=7", "takes 2, 0, 1"),
        ("-kgen:tiling=", "Invalid value for knob: -kgen:tiling=", "The value is empty"),
        ("-kgen:tiling=1]", "Invalid value for knob: -kgen:tiling=1]", "takes 2, 0, 1"),
        ("-peep:max=1]", "Invalid value for knob: -peep:max=1]", "takes any number"),
        ("-peep:max=...", "Invalid value for knob: -peep:max=...", "marks an open list"),
        ("-peep:max=int32_t", "Unbounded expression 'int32_t' not allowed", "Write the number"),
        ("-slice_elim=int32_t", "Unbounded expression 'int32_t' not allowed", "Write the number"),
    ],
)
def test_faults_have_the_cause_that_trtexec_gives(text: str, cause: str, remedy: str) -> None:
    with pytest.raises(UserInputError) as caught:
        parse_expression(text, DATABASE)
    message = str(caught.value)
    assert message.startswith(
        f"Cannot parse the expression: {cause}" if cause[0].isupper() else ""
    )
    assert cause in message
    assert remedy in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("-slice_elim=on -slice_elim=[off]", "Duplicate knob in expression: -slice_elim"),
        ("-peep:max=int", "Unbounded expression 'int' not allowed: -peep:max=int"),
        ("-peep:max=[int]", "Unbounded expression 'int' not allowed"),
        ("-slice_elim=[on|off", "Unclosed bracket in expression: -slice_elim=[on|off"),
        ("-slice_elim=]on[ -copy_ppg=on", "Unclosed bracket in expression: -slice_elim=]on["),
        ("-kgen:tiling=[0||2]", "Empty item in value list: -kgen:tiling=[0||2]"),
        ("-peep:max=[1|\uff11]", "Duplicate value '\uff11'"),
        ("-peep:max=a\x00b", "Invalid value for knob: -peep:max=a?b"),
        (" " * 1_000_001, "longer than 1000000 characters"),
    ],
    ids=lambda text: ascii(text[:40]),
)
def test_faults_that_trtexec_lets_pass_are_refused(text: str, cause: str) -> None:
    with pytest.raises(UserInputError) as caught:
        parse_expression(text, DATABASE)
    assert f"Cannot parse the expression: {cause}" in str(caught.value)


def test_faults_name_their_line_when_there_are_several() -> None:
    with pytest.raises(UserInputError, match="expression, line 3: Unknown knob: -b"):
        parse_expression("-slice_elim=[on\n|off]\r\n-b=on", DATABASE)


@given(st.text() | st.text("-=[]|.# \n\t:onf012int32_kgetl"))
def test_parsing_raises_nothing_but_user_errors(text: str) -> None:
    fault = ""
    try:
        expression = parse_expression(text, DATABASE)
    except UserInputError as error:
        fault = str(error)
    else:
        assert parse_expression(str(expression), DATABASE) == expression
    assert "\n" not in fault


@given(
    st.lists(
        st.sampled_from(
            ["-kgen:tiling", "-peep:max", "=", "[", "]", "|", "0", "int", "...", " ", "\t", "#"]
        )
    ).map("".join)
)
def test_parsing_near_misses_raises_nothing_but_user_errors(text: str) -> None:
    try:
        expression = parse_expression(text, DATABASE)
    except UserInputError:
        return
    assert parse_expression(str(expression), DATABASE) == expression


class TestFiles:
    def read(self, folder: Path, content: bytes) -> Expression:
        path = folder / "sweep.txt"
        path.write_bytes(content)
        return read_expression_file(path, DATABASE)

    def test_comments_and_lists_over_lines_are_read(self) -> None:
        expression = read_expression_file(GOLDEN / "sweep.txt", DATABASE)
        assert str(expression) == f"{EXAMPLE} -peep:max=2"

    def test_byte_order_mark_and_windows_line_ends_are_read(self, tmp_path: Path) -> None:
        content = b"\xef\xbb\xbf-conv_lowering=[on|off]\r\n# no\r\n-kgen:tiling=[0|1|2]\r\n"
        assert str(self.read(tmp_path, content)) == EXAMPLE

    def test_a_hash_inside_a_value_is_no_comment(self, tmp_path: Path) -> None:
        assert str(self.read(tmp_path, b"-peep:max=2#3 #4")) == "-peep:max=2#3"

    @pytest.mark.parametrize(
        ("content", "cause"),
        [
            (b"", "sweep.txt: Empty input"),
            (b"\xef\xbb\xbf", "sweep.txt: Empty input"),
            (b"# only a comment\n", "sweep.txt: No expressions found"),
            (b"# one\n-slice_elim=on\n-b=on\n", "sweep.txt, line 3: Unknown knob: -b"),
            (b"\xff\xfe-\x00", "sweep.txt: it is no UTF-8 text. Save it as UTF-8."),
            (b" " * 1_000_001, "sweep.txt: longer than 1000000 bytes"),
        ],
        ids=range(6),
    )
    def test_faults_name_the_file_and_line(
        self, tmp_path: Path, content: bytes, cause: str
    ) -> None:
        with pytest.raises(UserInputError) as caught:
            self.read(tmp_path, content)
        assert cause in str(caught.value)

    @pytest.mark.parametrize("name", ["missing.txt", ".", "null\0byte"])
    def test_a_file_that_cannot_be_opened_is_named(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(UserInputError, match=r"Cannot open the expression file .*Check"):
            read_expression_file(tmp_path / name, DATABASE)

    @given(st.binary(max_size=60))
    def test_reading_raises_nothing_but_user_errors(
        self, tmp_path_factory: pytest.TempPathFactory, content: bytes
    ) -> None:
        folder = tmp_path_factory.getbasetemp()
        fault = ""
        try:
            self.read(folder, content)
        except UserInputError as error:
            fault = str(error)
        assert "\n" not in fault


class TestBuildingExpressions:
    def test_an_expression_over_knobs_varies_all_their_values(self) -> None:
        knobs = [DATABASE["conv_lowering"], DATABASE["kgen:tiling"]]
        assert str(expression_over(knobs)) == EXAMPLE

    def test_an_open_knob_without_values_is_refused(self) -> None:
        with pytest.raises(UserInputError, match="peep:max is open"):
            expression_over([DATABASE["peep:max"]])

    def test_the_same_knob_twice_is_refused(self) -> None:
        item = ExpressionItem(Knob("a", ("1",), "1"), ("1",), is_variable=True)
        with pytest.raises(UserInputError, match="names a knob twice"):
            Expression((item, item))
