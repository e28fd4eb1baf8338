r"""The text form ``name:value[,name:value]`` in which options speak of tensors by name.

A name may hold anything: colons and slashes stand as they are, since the value begins after the
*last* colon. A name with a comma, a quote at its start, or blanks at its ends goes in single or
double quotes, where a backslash takes the next character literally; a value with a comma or a
colon is quoted likewise::

    images:0:1x3x640x640
    'a,b=c;d':3x2,"a'b\"c":3x2
    x:'/data/a,b.bin'
"""

from __future__ import annotations

import re
import shlex

from smart_tuner.errors import UserInputError

_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_END = r"\s*(?:,|\Z)"


def _item_patterns(fields: int) -> tuple[re.Pattern[str], ...]:
    value = r"[^,:'\"][^,:]*" + r":[^,:]*" * (fields - 1)
    return tuple(
        re.compile(r"\s*" + pattern + _END, re.DOTALL)
        for pattern in (
            rf"(?P<name>{_QUOTED})\s*:(?P<value>{_QUOTED})",
            rf"(?P<name>{_QUOTED})\s*:(?P<value>[^,]*)",
            rf"(?P<name>[^,'\"][^,]*?):(?P<value>{_QUOTED})",
            rf"(?P<name>[^,'\"][^,]*):(?P<value>{value})",
        )
    )


_PATTERNS = {fields: _item_patterns(fields) for fields in (1, 2)}


def _unquote(text: str) -> str:
    text = text.strip()
    if text[:1] in ("'", '"'):
        return re.sub(r"\\(.)", r"\1", text[1:-1], flags=re.DOTALL)
    return text


def split_items(text: str, form: str, *, fields: int = 1) -> list[tuple[str, str]]:
    """Split a text into names and values.

    Args:
        text: One or more items with commas between them.
        form: What an item looks like, for the error message: ``name:1x3x640x640``.
        fields: How many colon-separated fields a value has.

    Raises:
        UserInputError: An item is not of that form.
    """
    items: list[tuple[str, str]] = []
    position = 0
    while position < len(text) or not items:
        match = next(filter(None, (p.match(text, position) for p in _PATTERNS[fields])), None)
        name = _unquote(match["name"]) if match else ""
        if match is None or not name:
            msg = (
                f"{text[position:]!r} is not of the form {form}; put a name that holds commas or "
                "begins with a quote or a blank into quotes."
            )
            raise UserInputError(msg)
        items.append((name, _unquote(match["value"])))
        position = match.end()
        if position == len(text) and match[0].endswith(","):
            msg = f"{text!r} ends with a comma; take it away or name another item."
            raise UserInputError(msg)
    return items


def format_name(name: str) -> str:
    """The name as ``split_items`` reads it back, quoted only if it has to be."""
    if re.fullmatch(r"[^\s,:'\"\\](?:[^,'\"\\]*[^\s,:'\"\\])?", name):
        return name
    return "'" + re.sub(r"(['\\])", r"\\\1", name) + "'"


def option_text(option: str, items: list[str]) -> str:
    """An option with its value, ready to be pasted into a shell."""
    return f"{option} {shlex.quote(','.join(items))}"


def listed(names: list[str], limit: int = 12) -> str:
    """Names for a message: quoted, in one line, the rest counted."""
    shown = ", ".join(repr(name) for name in names[:limit])
    more = len(names) - limit
    return (f"{shown} and {more} more" if more > 0 else shown) or "none"
