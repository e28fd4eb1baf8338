import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from smart_tuner.engine.log import MAX_LOG_BYTES
from smart_tuner.engine.process import ChildProcess, log_tail
from smart_tuner.errors import ChildDied, ChildTimedOut

HERE = Path(__file__).parent
MODULE = "misbehaving_child"
LONG = 30.0
SpawnChild = Callable[..., ChildProcess]


@pytest.fixture
def spawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SpawnChild]:
    monkeypatch.setenv("PYTHONPATH", str(HERE))
    children: list[ChildProcess] = []

    def start(memory_limit_bytes: int | None = None) -> ChildProcess:
        log = tmp_path / "child.log"
        children.append(ChildProcess(MODULE, log=log, memory_limit_bytes=memory_limit_bytes))
        return children[-1]

    yield start
    for child in children:
        child.close()
        assert members(child.pid) == []


def members(group: int) -> list[int]:
    return [process.pid for process in psutil.process_iter() if is_member(process, group)]


def is_member(process: psutil.Process, group: int) -> bool:
    try:
        alive = process.status() != psutil.STATUS_ZOMBIE
        return alive and os.getpgid(process.pid) == group
    except (psutil.Error, OSError):
        return False


def descriptors() -> set[str]:
    return {path.name for path in Path("/proc/self/fd").iterdir()}


def is_gone(pid: int, within_seconds: float = 5.0) -> bool:
    deadline = time.perf_counter() + within_seconds
    while time.perf_counter() < deadline:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.02)
    return False


def test_a_request_gets_its_reply_and_prints_go_to_the_log(
    spawn: SpawnChild, tmp_path: Path
) -> None:
    child = spawn()
    values = {"text": "日本 \x00 \n", "number": 1.5, "long": "y" * 1_000_000}
    assert child.request({"do": "echo", "with": values}, timeout_seconds=LONG) == values
    assert child.request({"do": "echo"}, timeout_seconds=LONG) == {}
    assert child.peak_memory_bytes > 1 << 20
    assert log_tail(tmp_path / "child.log", 2) == "printed on stdout\nnative stderr"


def test_the_child_lives_apart_from_its_parent(
    spawn: SpawnChild, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "select.py").write_text("raise RuntimeError('shadowed')")
    seen = spawn().request({"do": "seen"}, timeout_seconds=LONG)
    assert seen["channel"] is None
    assert seen["session"] is True
    assert seen["stdin"] == ""
    assert seen["unbuffered"] == "1"


def test_close_leaves_no_process_no_zombie_and_no_descriptor(spawn: SpawnChild) -> None:
    before = descriptors()
    child = spawn()
    grandchild = child.request({"do": "start_grandchild"}, timeout_seconds=LONG)["pid"]
    child.close()
    child.close()
    assert is_gone(grandchild)
    assert not psutil.pid_exists(child.pid)
    assert descriptors() == before
    assert not child.is_alive
    with pytest.raises(ChildDied, match="was closed"):
        child.request({"do": "echo"}, timeout_seconds=LONG)


def test_a_grandchild_that_left_the_group_is_ended_too(spawn: SpawnChild) -> None:
    child = spawn()
    message = {"do": "start_grandchild", "with": {"new_session": True}}
    grandchild = child.request(message, timeout_seconds=LONG)["pid"]
    child.close()
    assert is_gone(grandchild)


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGTERM])
def test_death_by_signal_names_the_signal(spawn: SpawnChild, number: signal.Signals) -> None:
    child = spawn()
    with pytest.raises(ChildDied) as caught:
        child.request({"do": "die_by", "with": {"number": int(number)}}, timeout_seconds=LONG)
    assert str(caught.value).startswith(f"killed by {number.name}; last lines of its log: ")
    assert "about to die" in str(caught.value)
    assert "\n" not in str(caught.value)
    with pytest.raises(ChildDied, match=number.name):
        child.request({"do": "echo"}, timeout_seconds=LONG)


def test_a_segfault_leaves_a_stack_in_the_log(spawn: SpawnChild, tmp_path: Path) -> None:
    with pytest.raises(ChildDied):
        spawn().request({"do": "die_by", "with": {"number": 11}}, timeout_seconds=LONG)
    text = (tmp_path / "child.log").read_text()
    assert "Fatal Python error: Segmentation fault" in text
    assert "in die_by" in text


def test_sigkill_from_elsewhere_is_suspected_to_be_memory(spawn: SpawnChild) -> None:
    child = spawn()
    with pytest.raises(ChildDied, match=r"killed by SIGKILL \(out of memory\?\)"):
        child.request({"do": "die_by", "with": {"number": 9}}, timeout_seconds=LONG)


def test_a_child_killed_while_idle_is_noticed(spawn: SpawnChild) -> None:
    child = spawn()
    child.request({"do": "echo"}, timeout_seconds=LONG)
    os.kill(child.pid, signal.SIGKILL)
    assert is_gone(child.pid)
    assert not child.is_alive
    with pytest.raises(ChildDied, match="SIGKILL"):
        child.request({"do": "echo"}, timeout_seconds=LONG)


def test_exit_and_exception_are_told(spawn: SpawnChild) -> None:
    with pytest.raises(ChildDied, match="ended with exit code 7"):
        spawn().request({"do": "leave", "with": {"code": 7}}, timeout_seconds=LONG)
    with pytest.raises(ChildDied, match=r"exit code 1; .*KeyError: 'no such thing'"):
        spawn().request({"do": "fail"}, timeout_seconds=LONG)


def test_a_module_that_does_not_exist_is_a_death(tmp_path: Path) -> None:
    with (
        ChildProcess("smart_tuner.no_such_module", log=tmp_path / "log") as child,
        pytest.raises(ChildDied, match=r"exit code 1; .*No module named"),
    ):
        child.request({"do": "echo"}, timeout_seconds=LONG)


@pytest.mark.parametrize("action", ["sleep_for_ever", "hold_the_interpreter_for_ever"])
def test_a_hang_ends_at_the_deadline(spawn: SpawnChild, action: str) -> None:
    child = spawn()
    child.request({"do": "ignore_signals"}, timeout_seconds=LONG)
    grandchild = child.request({"do": "start_grandchild"}, timeout_seconds=LONG)["pid"]
    with pytest.raises(ChildTimedOut, match=r"passed its deadline of 0\.3 s"):
        child.request({"do": action}, timeout_seconds=0.3)
    assert is_gone(grandchild)
    assert not psutil.pid_exists(child.pid)
    with pytest.raises(ChildDied, match="deadline"):
        child.request({"do": "echo"}, timeout_seconds=LONG)


def test_memory_over_the_limit_is_named(spawn: SpawnChild) -> None:
    child = spawn(memory_limit_bytes=150_000_000)
    with pytest.raises(ChildDied, match=r"^out of memory: 0\.\d+ GB over the limit of 0\.15 GB"):
        child.request({"do": "allocate", "with": {"megabytes": 600}}, timeout_seconds=LONG)
    assert child.peak_memory_bytes > 150_000_000


def test_memory_is_watched_when_every_request_is_short(spawn: SpawnChild) -> None:
    child = spawn(memory_limit_bytes=150_000_000)
    with pytest.raises(ChildDied, match="out of memory"):
        child.request(
            {"do": "allocate_and_answer", "with": {"megabytes": 300}}, timeout_seconds=LONG
        )


def test_memory_of_grandchildren_counts(spawn: SpawnChild) -> None:
    child = spawn(memory_limit_bytes=200_000_000)
    message = {"do": "allocate_in_grandchild", "with": {"megabytes": 300}}
    with pytest.raises(ChildDied, match="out of memory"):
        child.request(message, timeout_seconds=LONG)


def test_a_flooded_log_is_cut_and_the_request_goes_on(spawn: SpawnChild, tmp_path: Path) -> None:
    child = spawn()
    reply = child.request({"do": "flood_log", "with": {"megabytes": 40}}, timeout_seconds=LONG)
    assert reply == {"written": 40}
    child.close()
    log = tmp_path / "child.log"
    assert log.stat().st_size <= MAX_LOG_BYTES
    assert "smart_tuner cut" in log.read_text()
    assert log_tail(log, 1) == "end of the flood"


@pytest.mark.parametrize("text", ["no json\n", "[1]\n", "{}\n{}\n", "\xff\xfe\n", "\n", "{} {}\n"])
def test_nonsense_on_the_protocol_pipe_is_a_death(spawn: SpawnChild, text: str) -> None:
    with pytest.raises(ChildDied, match="answered nonsense"):
        spawn().request({"do": "answer_nonsense", "with": {"text": text}}, timeout_seconds=LONG)


def test_a_reply_without_end_is_nonsense(spawn: SpawnChild) -> None:
    with pytest.raises(ChildDied, match="answered nonsense: more than"):
        spawn().request({"do": "answer_without_end"}, timeout_seconds=LONG)


def test_a_closed_pipe_is_a_death(spawn: SpawnChild) -> None:
    with pytest.raises(ChildDied, match="closed its pipe"):
        spawn().request({"do": "close_pipe_and_sleep"}, timeout_seconds=LONG)


def test_a_forked_grandchild_that_holds_the_pipes_hides_no_death(spawn: SpawnChild) -> None:
    with pytest.raises(ChildDied, match="ended with exit code 3"):
        spawn().request({"do": "fork_and_die"}, timeout_seconds=LONG)


def test_a_request_that_is_interrupted_ends_the_child(
    spawn: SpawnChild, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = spawn()
    child.request({"do": "echo"}, timeout_seconds=LONG)
    signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    with pytest.raises(KeyboardInterrupt):
        child.request({"do": "sleep_for_ever"}, timeout_seconds=LONG)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    assert not psutil.pid_exists(child.pid)


PARENT = """
import sys, time
from pathlib import Path
from smart_tuner.engine.process import ChildProcess
child = ChildProcess("misbehaving_child", log=Path(sys.argv[1]))
child.request({"do": "ignore_signals"}, timeout_seconds=30)
grandchild = child.request({"do": "start_grandchild"}, timeout_seconds=30)["pid"]
print(child.pid, grandchild, flush=True)
if sys.argv[2] != "idle":
    child.request({"do": sys.argv[2]}, timeout_seconds=600)
time.sleep(600)
"""


@pytest.mark.parametrize("doing", ["idle", "sleep_for_ever", "hold_the_interpreter_for_ever"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_no_orphan_outlives_a_killed_parent(
    tmp_path: Path, doing: str, number: signal.Signals
) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path / "log"), doing],
        stdout=subprocess.PIPE,
        text=True,
        env=dict(os.environ, PYTHONPATH=str(HERE)),
    )
    assert parent.stdout is not None
    child, grandchild = map(int, parent.stdout.readline().split())
    time.sleep(0.2)
    parent.send_signal(number)
    parent.wait()
    parent.stdout.close()
    assert is_gone(child)
    assert is_gone(grandchild)
    assert all(is_gone(pid) for pid in members(child))
