"""A child that does what real ones do at their worst; run as a module by test_process."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from smart_tuner.engine.process import serve

SLEEPER = "import time; time.sleep(600)"


def handle(message: dict[str, Any]) -> dict[str, Any]:
    reply: dict[str, Any] = globals()[message["do"]](**message.get("with", {}))
    return reply


def echo(**values: Any) -> dict[str, Any]:
    sys.stdout.write("printed on stdout\n")
    os.write(2, b"native stderr\n")
    return values


def die_by(number: int) -> dict[str, Any]:
    sys.stdout.write("about to die\n")
    if number == signal.SIGSEGV:
        ctypes.string_at(0)
    os.kill(os.getpid(), number)
    time.sleep(10)
    return {}


def leave(code: int) -> dict[str, Any]:
    os._exit(code)


def fail() -> dict[str, Any]:
    raise KeyError("no such thing")


def allocate(megabytes: int) -> dict[str, Any]:
    hoard = []
    for _ in range(megabytes // 10):
        hoard.append(bytearray(os.urandom(1 << 20) * 10))
        time.sleep(0.01)
    time.sleep(30)
    return {"kept": len(hoard)}


HOARD: list[bytes] = []


def allocate_and_answer(megabytes: int) -> dict[str, Any]:
    HOARD.append(b"x" * (megabytes << 20))
    return {"kept": megabytes}


def allocate_in_grandchild(megabytes: int) -> dict[str, Any]:
    code = f"import time; hoard = b'x' * ({megabytes} << 20); time.sleep(600)"
    subprocess.run([sys.executable, "-c", code], check=False)
    return {}


def sleep_for_ever() -> dict[str, Any]:
    while True:
        time.sleep(1)


def hold_the_interpreter_for_ever() -> dict[str, Any]:
    ctypes.PyDLL(None).sleep(600)
    return {}


def ignore_signals() -> dict[str, Any]:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    return {"ignored": True}


def start_grandchild(new_session: bool = False) -> dict[str, Any]:
    process = subprocess.Popen([sys.executable, "-c", SLEEPER], start_new_session=new_session)
    return {"pid": process.pid}


def fork_and_die() -> dict[str, Any]:
    if os.fork() == 0:
        time.sleep(600)  # holds the pipes open
    os._exit(3)


def flood_log(megabytes: int) -> dict[str, Any]:
    for _ in range(megabytes):
        os.write(1, b"x" * ((1 << 20) - 1) + b"\n")
        time.sleep(0.002)
    os.write(1, b"end of the flood\n")
    time.sleep(0.5)
    return {"written": megabytes}


def _protocol_fd() -> int:
    """The highest pipe end that can be written to."""
    return max(descriptor for descriptor in range(3, 64) if _is_writable_pipe(descriptor))


def _is_writable_pipe(descriptor: int) -> bool:
    try:
        is_pipe = str(Path(f"/proc/self/fd/{descriptor}").readlink()).startswith("pipe:")
        return is_pipe and os.write(descriptor, b"") == 0
    except OSError:
        return False


def answer_nonsense(text: str) -> dict[str, Any]:
    os.write(_protocol_fd(), text.encode())
    time.sleep(30)
    return {}


def answer_without_end() -> dict[str, Any]:
    while True:
        os.write(_protocol_fd(), b"x" * (1 << 16))


def close_pipe_and_sleep() -> dict[str, Any]:
    os.close(_protocol_fd())
    time.sleep(30)
    return {}


def seen() -> dict[str, Any]:
    return {
        "channel": os.environ.get("SMART_TUNER_CHANNEL"),
        "session": os.getsid(0) == os.getpid(),
        "stdin": os.read(0, 1).decode(),
        "unbuffered": os.environ.get("PYTHONUNBUFFERED"),
    }


if __name__ == "__main__":
    serve(handle)
