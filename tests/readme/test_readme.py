"""Every example of the README that a comment ``<!-- test -->`` stands before is run as it stands.

The examples are one session: they run in order, in one folder. Only their time budgets are cut.
The two set-up commands are not run here but must be what ``.ci/run`` runs.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(
    r"^(?P<marked><!-- test -->\n+)?^```(?P<language>bash|python)\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
BUDGET = re.compile(r"""(?P<flag>budget[ =]+"?)(?:\d+[hms]?)+""")
SHORT = "6s"


@dataclass(frozen=True)
class Example:
    """One block of code."""

    line: int
    language: str
    code: str
    is_marked: bool


EXAMPLES = [
    Example(
        TEXT.count("\n", 0, match.start("code")),
        match["language"],
        match["code"],
        match["marked"] is not None,
    )
    for match in BLOCK.finditer(TEXT)
]


def test_each_mark_stands_before_a_block() -> None:
    marked = [example for example in EXAMPLES if example.is_marked]
    assert TEXT.count("<!-- test -->") == len(marked) > 0


def test_python_examples_are_python() -> None:
    for example in EXAMPLES:
        if example.language == "python":
            compile(example.code, f"README.md, line {example.line}", "exec")


def test_commands_of_all_examples_exist() -> None:
    from smart_tuner.cli.main import COMMANDS

    called = re.findall(r"(?:^|/)smart-tuner ([a-z]+)", TEXT, re.MULTILINE)
    assert set(called) <= set(COMMANDS), called


@pytest.mark.timeout(300)
def test_marked_examples_run(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    tool = tools / "smart-tuner"
    tool.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m smart_tuner "$@"\n')
    tool.chmod(0o755)
    folder = tmp_path / "here"
    folder.mkdir()
    environment = {**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
    for example in EXAMPLES:
        if not example.is_marked:
            continue
        code = BUDGET.sub(rf"\g<flag>{SHORT}", example.code)
        words = {
            "bash": ["bash", "-euo", "pipefail", "-c", code],
            "python": [sys.executable, "-c", code],
        }[example.language]
        ended = subprocess.run(
            words, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        place = f"README.md, line {example.line}"
        assert ended.returncode == 0, f"{place}:\n{ended.stdout[-3000:]}\n{ended.stderr[-3000:]}"
        assert "Traceback" not in ended.stderr, f"{place}:\n{ended.stderr}"


def steps(command: str) -> list[list[str]]:
    """The single commands of a line, without what only makes them quieter."""
    loud = (word for word in shlex.split(command) if word not in {"-q", "--quiet"})
    found: list[list[str]] = [[]]
    for word in loud:
        if word == "&&":
            found.append([])
        else:
            found[-1].append(word)
    return found


def test_set_up_commands_are_those_of_continuous_integration() -> None:
    commands = [
        line
        for example in EXAMPLES
        for line in example.code.splitlines()
        if example.language == "bash" and "pip install" in line
    ]
    run, test = commands
    done = [
        line.strip() for line in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    ]
    positions = [
        next(number for number, line in enumerate(done) if line and steps_or_none(line) == [step])
        for step in steps(test)
    ]
    assert positions == sorted(positions)
    assert steps(run)[0] == steps(test)[0]
    assert steps(run)[-1] == [".venv/bin/smart-tuner", "quickstart"]


def steps_or_none(line: str) -> list[list[str]] | None:
    try:
        return steps(line)
    except ValueError:  # a line of shell with an open quote
        return None
