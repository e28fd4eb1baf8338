"""Files as an enemy or a bad disk would hand them in: valid ones, changed."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import tomli_w
from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable

_NAMES = st.text(max_size=8)
_NUMBERS = st.one_of(
    st.integers(-3, 3),
    st.integers(),
    st.just(10**400),
    st.floats(),
    st.sampled_from([float("nan"), float("inf"), 1e308, 5e-324]),
)
_TEXTS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(["", "..", "../x", "/etc/passwd", "\0", "[", "]", "a|b", "-a=[b", "int"]),
    st.sampled_from(["\ud800", "\x1b[31m", "a\nb", "sha256", "9" * 5000, "x" * 2000]),
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), _NUMBERS, _TEXTS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(_NAMES, inner, max_size=3)
    ),
    max_leaves=6,
)
_DEEP = 3000


@st.composite
def changed(draw: Callable[..., Any], document: Any) -> Any:
    """A document with one to four of its parts replaced, dropped, doubled or added."""
    whole = copy.deepcopy(document)
    for _ in range(draw(st.integers(1, 4))):
        places = list(_places(whole))
        if not places:
            return draw(VALUES)
        home, key = draw(st.sampled_from(places))
        action = draw(st.sampled_from(["replace", "drop", "add", "rename"]))
        if action == "drop":
            del home[key]
        elif action == "replace":
            home[key] = draw(VALUES)
        elif isinstance(home, dict):
            value = home[key] if action == "rename" else draw(VALUES)
            home[draw(_NAMES)] = value
        else:
            home.append(draw(VALUES))
    return whole


def _places(node: Any) -> Any:
    """Every container of a document with each of its keys."""
    items = node.items() if isinstance(node, dict) else enumerate(node)
    for key, value in list(items):
        yield node, key
        if isinstance(value, dict | list):
            yield from _places(value)


def json_files(document: Any) -> st.SearchStrategy[bytes]:
    """Bytes that once were a JSON file."""
    valid = json.dumps(document).encode()
    return st.one_of(
        changed(document).map(lambda data: json.dumps(data).encode()),
        spliced(valid),
        st.just(b'{"a":' * _DEEP),
        st.just(b"[" * 200_000),
        st.binary(max_size=40),
    )


def toml_files(document: Any) -> st.SearchStrategy[bytes]:
    """Bytes that once were a TOML file."""
    valid = tomli_w.dumps(document).encode()
    return st.one_of(
        changed(document).map(_toml),
        spliced(valid),
        st.just(b"a = " + b"[" * _DEEP),
        st.just(b"a" + b".a" * _DEEP + b" = 1"),
        st.just(b"a = " + b"9" * 5000),
        st.binary(max_size=40),
    )


def _toml(data: Any) -> bytes:
    """What TOML has of a document; the rest of it is left out."""
    try:
        return tomli_w.dumps(data).encode("utf-8", "surrogatepass")
    except (TypeError, ValueError, AttributeError):
        return b"a = 1\n"


@st.composite
def spliced(draw: Callable[..., Any], valid: bytes) -> bytes:
    """Valid bytes with pieces cut out, doubled or overwritten."""
    data = bytearray(valid)
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 20)))
        doubled = bytes(data[start:end]) * 2
        data[start:end] = draw(st.one_of(st.binary(max_size=6), st.just(doubled)))
    return bytes(data)


def texts(valid: str) -> st.SearchStrategy[str]:
    """Text that once was an expression, or never was one."""
    near = spliced(valid.encode()).map(lambda data: data.decode("utf-8", "surrogateescape"))
    return st.one_of(near, st.text(alphabet="-=[]|.: \t\nab10int,'\"\\", max_size=40), _TEXTS)
