from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_tuner.engine.channel import decode, encode

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)  # fmt: skip


@given(st.dictionaries(st.text(), JSON, max_size=4))
def test_a_message_is_one_line_and_comes_back_equal(message: dict[str, object]) -> None:
    line = encode(message)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert decode(line) == message


@given(st.binary(max_size=200))
def test_any_bytes_are_a_message_or_a_value_error(line: bytes) -> None:
    with suppress(ValueError):
        assert isinstance(decode(line), dict)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_json_lacks_is_refused(number: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        encode({"number": number})
