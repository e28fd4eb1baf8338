import signal
import subprocess
import sys
from pathlib import Path

import pytest

from smart_tuner.devices.lock import device_lock, lock_path
from smart_tuner.errors import EnvironmentNotFit

HOLD = """
import sys, time
from smart_tuner.devices.lock import device_lock
with device_lock(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.readline()
"""
TRY = """
import sys
from smart_tuner.devices.lock import device_lock
with device_lock(sys.argv[1], on_wait=lambda text: (print(text, flush=True), sys.exit(5))):
    print("free")
"""


@pytest.fixture(autouse=True)
def own_runtime_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


def hold(device: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, device],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def attempt(device: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", TRY, device]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def end(process: subprocess.Popen[str], number: int) -> None:
    process.send_signal(number)
    process.communicate()


def test_a_second_process_waits_and_names_the_holder() -> None:
    holder = hold("GPU / 0")
    out = attempt("GPU / 0")
    end(holder, signal.SIGTERM)
    assert out.returncode == 5
    assert out.stdout == f"Waiting for GPU / 0: process {holder.pid} is measuring on it.\n"


def test_another_device_is_free() -> None:
    holder = hold("GPU 0")
    out = attempt("GPU 1")
    end(holder, signal.SIGTERM)
    assert out.stdout == "free\n"


def test_a_waiter_gets_the_lock_when_the_holder_is_killed() -> None:
    holder = hold("cpu")
    waited: list[str] = []

    def kill_holder(text: str) -> None:
        waited.append(text)
        end(holder, signal.SIGKILL)

    with device_lock("cpu", on_wait=kill_holder, patience_seconds=0.1):
        assert len(waited) == 1


def test_a_lock_file_left_behind_never_blocks() -> None:
    holder = hold("cpu")
    end(holder, signal.SIGKILL)
    assert lock_path("cpu").exists()
    waited: list[str] = []
    with device_lock("cpu", on_wait=waited.append):
        pass
    with device_lock("cpu", on_wait=waited.append):
        pass
    assert waited == []


def test_the_lock_is_released_by_an_exception() -> None:
    with pytest.raises(KeyboardInterrupt), device_lock("cpu"):
        raise KeyboardInterrupt
    with device_lock("cpu"):
        pass


@pytest.mark.parametrize("device", ["", "a/../b", "日本", "x" * 5000, "\n\x00", "\ud800"])
def test_any_text_names_a_lock_file_in_the_runtime_folder(device: str, tmp_path: Path) -> None:
    assert tmp_path in lock_path(device).parents
    with device_lock(device):
        assert lock_path(device).exists()


def test_a_runtime_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "smart_tuner").write_text("in the way")
    with pytest.raises(EnvironmentNotFit, match="XDG_RUNTIME_DIR"):
        lock_path("cpu")
