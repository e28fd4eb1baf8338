from __future__ import annotations

import importlib
import re
import subprocess
import sys

import pytest

from smart_tuner.cli.main import COMMANDS, module_of
from smart_tuner.cli.options import SECTIONS
from smart_tuner.study.setup.settings import StudySettings
from tests.unit.cli.calling import call

WIDTH = 80
HEAVY = (
    *("numpy", "onnx", "onnxruntime", "optuna", "pydantic", "scipy", "sqlalchemy"),
    *("psutil", "filelock", "ml_dtypes"),
)


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))


def help_of(*words: str) -> str:
    ended = call(*words, "--help")
    assert ended.code == 0
    assert ended.err == ""
    return ended.out


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_is_whole(command: str) -> None:
    text = help_of(command)
    example = importlib.import_module(module_of(command)).EXAMPLE
    assert text.splitlines()[-1] == f"  Example: {example}"
    assert example.startswith(f"smart-tuner {command}")
    assert max(map(len, text.splitlines())) <= WIDTH
    assert not re.search(r"None|<list|<str>|[a-z]\.\.\.$", text, re.MULTILINE), text


def test_help_lists_every_command_in_full() -> None:
    text = help_of()
    for name, words in COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(words)}$", text, re.MULTILINE), text
    assert "Example: smart-tuner tune" in text
    assert max(map(len, text.splitlines())) <= WIDTH


def test_every_setting_has_one_flag_in_one_section() -> None:
    placed = [name for section in SECTIONS.values() for name in section]
    assert sorted(placed) == sorted(StudySettings.model_fields)
    text = help_of("tune")
    for name in placed[1:]:
        flag = f"--{name.replace('_', '-')}"
        assert len(re.findall(rf"^  {flag} ", text, re.MULTILINE)) == 1, flag


def test_sections_begin_with_what_is_used_most() -> None:
    headings = re.findall(r"^([A-Z].*):$", help_of("tune"), re.MULTILINE)
    assert headings == [*SECTIONS, "Options"]
    assert re.findall(r"^  (--\S+)", help_of("tune"), re.MULTILINE)[0] == "--budget"
    assert re.findall(r"^  (--\S+)", help_of("apply"), re.MULTILINE)[0] == "--route"


@pytest.mark.parametrize("words", [["--help"], ["--version"]])
def test_help_imports_nothing_heavy(words: list[str]) -> None:
    code = (
        "import sys\n"
        "from smart_tuner.cli.main import main\n"
        f"main({words!r})\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])\n"
        "print([name for name in sys.modules if name.startswith('smart_tuner.')])\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    heavy, ours = ended.stdout.splitlines()[-2:]
    assert heavy == "[]"
    light = {"smart_tuner.errors", "smart_tuner.version"}
    assert {name for name in eval(ours) if ".cli" not in name} == light
