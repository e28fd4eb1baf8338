import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from smart_tuner.errors import EnvironmentNotFit, StudyBusy, UserInputError
from smart_tuner.study.files.folder import StudyFolder

DOCUMENT: dict[str, Any] = {
    "seed": 3,
    "settings": {"model": "m.onnx", "trials": None, "inputs": ["a", None]},
    "identity": {"model": "abc", 'base \u00e9 "x"': "1"},
    "space": {"k:0": ["a", "b"]},
    "accuracy": {"metric": "l0", "epsilon": "inf"},
}


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_making_a_folder_makes_those_above_it_and_says_which(tmp_path: Path) -> None:
    root = tmp_path / "a" / "b" / "study"
    assert StudyFolder(root).create() == (root, tmp_path / "a" / "b", tmp_path / "a")
    assert StudyFolder(root).create() == ()
    assert names(root) == set()


def test_a_start_that_failed_leaves_nothing_of_its_own(tmp_path: Path) -> None:
    folder = StudyFolder(tmp_path / "a" / "study")
    made = folder.create()
    with folder.locked():
        folder.references.mkdir()
        folder.engines.mkdir()
        folder.platform_file.write_text("{}")
        folder.discard(made)
    assert names(tmp_path) == set()


def test_discarding_keeps_folders_that_were_there_or_that_others_filled(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    folder = StudyFolder(tmp_path / "a" / "b" / "study")
    made = folder.create()
    (tmp_path / "a" / "b" / "mine.txt").write_text("precious")
    folder.discard(made)
    assert names(tmp_path / "a" / "b") == {"mine.txt"}


@pytest.mark.parametrize("content", ["notes.txt", "references", "engines", ".hidden"])
def test_a_folder_with_other_things_is_refused_and_left_alone(
    tmp_path: Path, content: str
) -> None:
    root = tmp_path / "study"
    (root / content).mkdir(parents=True)
    with pytest.raises(UserInputError, match="holds files but no study: name another"):
        StudyFolder(root).create()
    assert names(root) == {content}


def test_what_a_killed_start_left_is_taken_over(tmp_path: Path) -> None:
    root = tmp_path / "study"
    for name in ("references", "engines"):
        (root / name).mkdir(parents=True)
    for name in (".lock", "platform.json", "study.toml.partial"):
        (root / name).touch()
    assert StudyFolder(root).create() == ()


def test_an_empty_folder_is_free(tmp_path: Path) -> None:
    assert StudyFolder(tmp_path).create() == ()


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "study").write_text("x")
    for root in (tmp_path / "study", tmp_path / "study" / "below"):
        with pytest.raises(EnvironmentNotFit, match=r"Cannot write to .*study.*--study"):
            StudyFolder(root).create()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_rights_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(EnvironmentNotFit, match="Permission denied"):
        StudyFolder(tmp_path / "study").create()


def test_a_folder_that_cannot_be_made_is_named() -> None:
    with pytest.raises(EnvironmentNotFit, match=r"Cannot write to /proc/no/study"):
        StudyFolder(Path("/proc/no/study")).create()


def test_leftovers_of_a_killed_session_are_removed_and_files_of_workers_left(
    tmp_path: Path,
) -> None:
    folder = StudyFolder(tmp_path)
    for path in (
        folder.workers / "other" / "baseline" / "engine.partial",
        folder.references / "default" / "x.inputs.partial",
        folder.root / "winner.partial" / "engine.json",
        folder.root / "scratch.partial" / "deep.partial",
        folder.trial(3) / "result.json",
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    folder.remove_leftovers()
    left = {path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()}
    other = Path("workers/other/baseline/engine.partial")
    assert left == {Path("trials/3/result.json"), other}


def test_settings_are_read_back_without_what_toml_cannot_say(tmp_path: Path) -> None:
    folder = StudyFolder(tmp_path)
    folder.write_settings(DOCUMENT)
    assert folder.exists
    document = folder.read_settings()
    assert document.pop("schema_version") == 1
    assert document == DOCUMENT | {"settings": {"model": "m.onnx", "inputs": ["a"]}}
    assert names(tmp_path) == {"study.toml"}


def test_writing_again_keeps_the_schema_version_of_today(tmp_path: Path) -> None:
    folder = StudyFolder(tmp_path)
    folder.write_settings(DOCUMENT)
    folder.write_settings({**folder.read_settings(), "settings": {}})
    assert folder.read_settings()["settings"] == {}


def test_no_study_says_how_to_start_one(tmp_path: Path) -> None:
    with pytest.raises(UserInputError, match=r"No study in .*smart-tuner tune MODEL --study"):
        StudyFolder(tmp_path).read_settings()


def test_a_newer_study_is_refused(tmp_path: Path) -> None:
    folder = StudyFolder(tmp_path)
    folder.write_settings(DOCUMENT)
    text = folder.settings_file.read_text()
    folder.settings_file.write_text(text.replace("schema_version = 1", "schema_version = 2"))
    with pytest.raises(UserInputError, match=r"newer smart_tuner \(schema 2.*upgrade"):
        folder.read_settings()


def damaged(change: str) -> str:
    document = {key: value for key, value in DOCUMENT.items() if key != change}
    return "schema_version = 1\n" + "".join(
        f"{key} = 1\n" if key != "seed" else "seed = 3\n" for key in document
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("schema_version = ", "is not valid TOML"),
        ("\x00", "is not valid TOML"),
        ("seed = 3", "names no schema_version"),
        ("schema_version = '1'", "names no schema_version"),
        (damaged("seed"), r"is damaged \(seed: "),
        (damaged("space"), r"is damaged \(settings: "),
    ],
)
def test_a_damaged_study_is_one_line(tmp_path: Path, text: str, words: str) -> None:
    folder = StudyFolder(tmp_path)
    folder.settings_file.write_text(text)
    with pytest.raises(UserInputError, match=words) as caught:
        folder.read_settings()
    assert "\n" not in str(caught.value)


def test_one_process_at_a_time(tmp_path: Path) -> None:
    folder = StudyFolder(tmp_path)
    with (
        folder.locked(),
        pytest.raises(StudyBusy, match="Another smart-tuner works in"),
        StudyFolder(tmp_path).locked(),
    ):
        pass
    with folder.locked():
        pass


def test_the_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    program = (
        "import os, signal, sys; from pathlib import Path\n"
        "from smart_tuner.study.files.folder import StudyFolder\n"
        "with StudyFolder(Path(sys.argv[1])).locked(): os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False)
    assert done.returncode == -9
    assert (tmp_path / ".lock").exists()
    with StudyFolder(tmp_path).locked():
        pass
