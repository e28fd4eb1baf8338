import subprocess
import sys
import time
from pathlib import Path

import psutil

from smart_tuner.engine.once import run_once


def test_how_a_child_ended_is_said_with_its_last_line(tmp_path: Path) -> None:
    assert run_once("json.tool", tmp_path / "none.json", 60.0).startswith("exit code 2: ")
    assert run_once("no_such_module", tmp_path, 60.0).endswith("No module named no_such_module")


def test_a_child_that_never_answers_is_killed(tmp_path: Path) -> None:
    assert run_once("http.server", Path("0"), 0.5) == "no answer within 0 s"


def test_a_child_ends_with_its_parent(tmp_path: Path) -> None:
    child = (
        "import os, sys, time; from smart_tuner.engine.once import end_with_parent; "
        "end_with_parent(int(sys.argv[1])); print(os.getpid(), flush=True); time.sleep(60)"
    )
    parent = (
        "import os, subprocess, sys, time; "
        f"subprocess.Popen([sys.executable, '-c', {child!r}, str(os.getpid())]); time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True)
    assert process.stdout
    pid = int(process.stdout.readline())
    process.kill()
    process.wait()
    process.stdout.close()
    deadline = time.monotonic() + 10
    while psutil.pid_exists(pid) and time.monotonic() < deadline:
        if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            break
        time.sleep(0.01)
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_a_child_whose_parent_is_gone_already_ends_at_once() -> None:
    code = "from smart_tuner.engine.once import end_with_parent; end_with_parent(1 << 30)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 1
