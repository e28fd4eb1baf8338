"""The line between a parent and its child process: JSON lines over two pipes, and a life line.

Standard input and output are never used for it: native code prints there.
"""

from __future__ import annotations

import fcntl
import json
import os
import resource
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable

Message = dict[str, Any]

CHANNEL_VARIABLE = "SMART_TUNER_CHANNEL"
MAX_MESSAGE_BYTES = 64 << 20

# Reads the life line until the parent is gone, then ends the whole process group. A process and
# not a thread: native code may hold the interpreter's lock for as long as it likes.
_GUARD = "read _; kill -KILL 0"
_OOM_SCORE = "500"


def encode(message: Message) -> bytes:
    """Return a message as one line of strict JSON.

    Raises:
        ValueError: The message holds NaN or an infinity.
    """
    return json.dumps(message, allow_nan=False, separators=(",", ":")).encode() + b"\n"


def decode(line: bytes) -> Message:
    """Return the message of one line.

    Raises:
        ValueError: The line is not a JSON object.
    """
    message = json.loads(line)
    if not isinstance(message, dict):
        msg = "not a JSON object"
        raise ValueError(msg)  # noqa: TRY004 - one exception for every kind of nonsense
    return message


def serve(handle: Callable[[Message], Message]) -> NoReturn:
    """Answer the parent's requests until it hangs up; the child's side of ``ChildProcess``.

    When the parent hangs up or dies, even by ``kill -9``, the child's whole process group is
    killed at once, without any cleaning up: native code may hang in that.

    Args:
        handle: Turns a request into its reply. What it raises ends the process.
    """
    requests, replies, life = map(int, os.environ.pop(CHANNEL_VARIABLE).split(","))
    for descriptor in (requests, replies, life):
        fcntl.fcntl(descriptor, fcntl.F_SETFD, fcntl.FD_CLOEXEC)
    guard = _start_guard(life)
    _prefer_to_die()
    with os.fdopen(requests, "rb") as incoming, os.fdopen(replies, "wb") as outgoing:
        for line in incoming:
            outgoing.write(encode(handle(decode(line))))
            outgoing.flush()
    # The guard is reaped first: where nobody reaps orphans, each would stay as a zombie.
    os.kill(guard, signal.SIGKILL)
    os.waitpid(guard, 0)
    os.killpg(0, signal.SIGKILL)
    os._exit(0)


def _start_guard(life: int) -> int:
    actions = [(os.POSIX_SPAWN_DUP2, life, 0)]
    guard = os.posix_spawn("/bin/sh", ["sh", "-c", _GUARD], {}, file_actions=actions)
    os.close(life)
    return guard


def _prefer_to_die() -> None:
    """Leave no core file in the user's folder, and go before the parent when memory runs out."""
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(_OOM_SCORE, encoding="ascii")
