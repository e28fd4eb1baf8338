import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from smart_tuner.model.scratch import PREFIX, remove_abandoned, scratch_folder

OWNER = """
from smart_tuner.model.scratch import scratch_folder
with scratch_folder() as folder:
    print(folder, flush=True)
    input()
"""


@pytest.fixture(autouse=True)
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)


def test_a_folder_is_gone_afterwards_even_with_files_in_it() -> None:
    with scratch_folder() as folder:
        (folder / "deep").mkdir()
        (folder / "deep" / "file").write_text("text")
        assert folder.name.startswith(PREFIX)
    assert not folder.exists()


def test_the_folder_of_a_killed_process_is_removed_and_that_of_a_living_one_is_kept(
    tmp_path: Path,
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as owner:
        assert owner.stdout is not None
        folder = Path(owner.stdout.readline().strip())
        (folder / "file").write_text("text")
        remove_abandoned(young_seconds=-60)
        assert (folder / "file").is_file()
        os.kill(owner.pid, signal.SIGKILL)
        owner.wait()
    assert folder.is_dir()
    remove_abandoned()
    assert folder.is_dir(), "it is too young to be sure"
    remove_abandoned(young_seconds=-60)
    assert not folder.exists()


def test_what_is_not_a_folder_of_ours_stays(tmp_path: Path) -> None:
    (tmp_path / f"{PREFIX}file").write_text("text")
    (tmp_path / "other").mkdir()
    (tmp_path / f"{PREFIX}link").symlink_to(tmp_path / "other")
    remove_abandoned(young_seconds=-60)
    assert {path.name for path in tmp_path.iterdir()} == {
        f"{PREFIX}file",
        f"{PREFIX}link",
        "other",
    }
