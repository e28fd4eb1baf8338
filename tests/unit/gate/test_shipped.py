"""Whether a folder is what was shipped, before anybody loads an engine out of it."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from smart_tuner.errors import UserInputError
from smart_tuner.gate.shipped import check_shipped
from smart_tuner.report.export.sums import SUMS, read_sums, write_sums
from tests.unit.cli.calling import call
from tests.unit.gate.pipelines import Pipeline


@pytest.fixture(params=["winner", "entry", "export"])
def shipped(request: pytest.FixtureRequest, pipeline: Pipeline, tmp_path: Path) -> Path:
    entry = pipeline.entries()[0]
    if request.param == "entry":
        return entry
    winner = shutil.copytree(entry / "candidate", tmp_path / "study" / "winner")
    if request.param == "export":
        (winner / "deep").mkdir()
        (winner / "deep" / "a file.txt").write_text("x")
        write_sums(winner)
        return winner
    return winner.parent


def engine_of(folder: Path) -> Path:
    return next(folder.rglob("engine.json"))


def test_what_was_shipped_is_whole(shipped: Path) -> None:
    ended = call("verify", shipped, "--manifest", "--json")
    found = json.loads(ended.out)
    assert (ended.code, found["problems"]) == (0, [])
    assert check_shipped(shipped, found["sha256"]).problems == ()
    (problem,) = check_shipped(shipped, "0" * 64).problems
    assert "pinned" in problem


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda path: path.write_text("{}"), "changed"),
        (lambda path: path.unlink(), "missing"),
        (lambda path: path.with_name("more.so").write_text("x"), "not listed"),
        (lambda path: path.with_name("link").symlink_to("/etc/hostname"), "not listed"),
    ],
)
def test_every_change_is_named(shipped: Path, harm: Callable[[Path], object], said: str) -> None:
    harm(engine_of(shipped))
    ended = call("verify", shipped, "--manifest")
    assert ended.code == 1
    assert said in ended.out.splitlines()[0]
    assert "do not load it" in ended.out


def test_a_folder_without_digests_is_refused(tmp_path: Path) -> None:
    ended = call("verify", tmp_path, "--manifest")
    assert (ended.code, len(ended.err.splitlines())) == (2, 1)
    assert "manifest.json" in ended.err


@pytest.mark.parametrize("line", ["x", f"{'0' * 64}  ../a", f"{'0' * 64}  /etc/a", ""])
def test_a_list_of_digests_stays_inside_its_folder(line: str) -> None:
    with pytest.raises(UserInputError, match="line 1"):
        read_sums(f"{line}\n", SUMS)
