"""Every parser of foreign files takes what it is given, or refuses it in one line.

A short look in the suite; ``python -m tests.parsers.soak --minutes 10`` takes its time.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from smart_tuner.cli.errors import one_line
from smart_tuner.errors import UserInputError
from tests.parsers.targets import Target, targets

TARGETS = targets()
EXAMPLES = 25
LONGEST = 20_000


def survives(target: Target, food: Any) -> None:
    """A value or one printable line, and never anything else."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            target.read(food, Path(folder))
        except UserInputError as error:
            line = one_line(str(error))
            assert all(letter.isprintable() or letter in "\t\xa0" for letter in line), line
            assert 10 < len(line) < LONGEST, line


@pytest.mark.parametrize("name", TARGETS)
@settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), database=None
)
@given(data=st.data())
def test_a_parser_survives(name: str, data: st.DataObject) -> None:
    survives(TARGETS[name], data.draw(TARGETS[name].food))
