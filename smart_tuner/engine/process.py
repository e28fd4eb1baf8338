"""A child process that may crash, hang, flood or lie without harming its parent."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from smart_tuner.engine.channel import (
    CHANNEL_VARIABLE,
    MAX_MESSAGE_BYTES,
    Message,
    decode,
    encode,
    serve,
)
from smart_tuner.engine.log import cap_log, last_words, log_tail
from smart_tuner.engine.process_group import (
    descendants,
    kill_group,
    resident_bytes,
    resident_bytes_of,
    wait_for_group,
)
from smart_tuner.errors import ChildDied, ChildTimedOut

if TYPE_CHECKING:
    import psutil
    from typing_extensions import Self

__all__ = ["ChildProcess", "log_tail", "serve"]

_WATCH_SECONDS = 0.1
_FAREWELL_SECONDS = 1.0
_KILL_SECONDS = 5.0
_CHUNK_BYTES = 1 << 16
_GIGABYTE = 1e9


class ChildProcess:
    """A Python module run in a process of its own, in its own session and process group.

    The module calls ``serve``. A request gets a reply, or the child and everything that it started
    is killed and the reason raised; after that every further request raises it again.
    """

    def __init__(
        self,
        module: str,
        *,
        log: Path,
        memory_limit_bytes: int | None = None,
        python: str = sys.executable,
    ) -> None:
        """Start the process.

        Args:
            module: Run as ``python -m module``.
            log: File that standard output and error are appended to, kept below 16 MiB.
            memory_limit_bytes: Resident memory of the whole process group, polled.
            python: The interpreter.
        """
        self._log = log
        self._limit = memory_limit_bytes
        self._peak = 0
        self._next_look = 0.0
        self._end = ""
        child_requests, self._requests = os.pipe()
        self._replies, child_replies = os.pipe()
        child_life, self._life = os.pipe()
        theirs = (child_requests, child_replies, child_life)
        try:
            self._process = _spawn(python, module, log, theirs)
        except BaseException:
            self._hang_up()
            raise
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        os.set_blocking(self._requests, False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """Process id, and id of its process group."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether the process runs and can be asked."""
        return not self._end and self._process.poll() is None

    @property
    def peak_memory_bytes(self) -> int:
        """Most resident memory that the group was seen with, polled while a request ran."""
        return self._peak

    def request(self, message: Message, *, timeout_seconds: float) -> Message:
        """Send a message and wait for the reply.

        Args:
            message: Anything that strict JSON can hold.
            timeout_seconds: Deadline; the whole process group is killed when it passes.

        Raises:
            ChildTimedOut: The deadline passed.
            ChildDied: The process ended, passed its memory limit or answered nonsense.
        """
        if self._end:
            raise ChildDied(self._end)
        deadline = time.perf_counter() + timeout_seconds
        try:
            line = self._exchange(encode(message), deadline, timeout_seconds)
        except BaseException as error:
            # Also on Ctrl-C: a reply that comes later would answer the wrong request.
            self._kill(str(error) or type(error).__name__)
            raise
        try:
            return decode(line)
        except ValueError:
            self._fail(f"answered nonsense: {line[:80]!r}")

    def close(self) -> None:
        """End the process and everything that it started; does nothing the second time."""
        if self._end:
            return
        strays = descendants(self.pid)
        # Forgotten first: Ctrl-C may come between two lines, and nothing is closed twice.
        requests, self._requests = self._requests, -1
        if requests >= 0:
            os.close(requests)
        try:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_FAREWELL_SECONDS)
        finally:
            self._finish("was closed", strays)

    def _exchange(self, payload: bytes, deadline: float, timeout_seconds: float) -> bytes:
        outgoing, incoming = memoryview(payload), bytearray()
        poller = select.poll()
        poller.register(self._replies, select.POLLIN)
        poller.register(self._requests, select.POLLOUT)
        complete = False
        while not complete:
            ready = dict(poller.poll(_WATCH_SECONDS * 1000))
            if self._requests in ready:
                outgoing = outgoing[self._send(outgoing) :]
                if not outgoing:
                    poller.unregister(self._requests)
            if self._replies in ready:
                complete = self._receive(incoming)
            elif self._process.poll() is not None:
                self._fail_as_ended()
            if not complete:
                self._watch(deadline, timeout_seconds)
        # Short requests end before the watch looks again, and many of them may add up. One
        # process is asked in microseconds, the whole group in milliseconds.
        used = resident_bytes_of(self.pid)
        self._peak = max(self._peak, used)
        if self._limit is not None and used > self._limit:
            self._look()
        return bytes(incoming)

    def _send(self, outgoing: memoryview) -> int:
        try:
            return os.write(self._requests, outgoing)
        except BlockingIOError:
            return 0
        except BrokenPipeError:
            self._fail_as_ended()

    def _receive(self, incoming: bytearray) -> bool:
        """Read what is there and return whether the reply's last byte came."""
        chunk = os.read(self._replies, _CHUNK_BYTES)
        if not chunk:
            self._fail_as_ended()
        incoming += chunk
        if len(incoming) > MAX_MESSAGE_BYTES:
            self._fail(f"answered nonsense: more than {MAX_MESSAGE_BYTES} bytes")
        return b"\n" in chunk

    def _watch(self, deadline: float, timeout_seconds: float) -> None:
        now = time.perf_counter()
        if now > deadline:
            msg = f"passed its deadline of {timeout_seconds:.3g} s{self._last_words()}"
            raise ChildTimedOut(msg)
        if now >= self._next_look:
            self._look()
            # Looking takes processor time from what may be a measurement: at most one percent.
            spent = time.perf_counter() - now
            self._next_look = now + max(_WATCH_SECONDS, 100 * spent)

    def _look(self) -> None:
        cap_log(self._log)
        used = resident_bytes(self.pid)
        self._peak = max(self._peak, used)
        if self._limit is not None and used > self._limit:
            self._fail(
                f"out of memory: {used / _GIGABYTE:.3g} GB over the limit of "
                f"{self._limit / _GIGABYTE:.3g} GB"
            )

    def _fail_as_ended(self) -> NoReturn:
        try:
            code = self._process.wait(_FAREWELL_SECONDS)
        except subprocess.TimeoutExpired:
            self._fail("closed its pipe without an answer")
        if code >= 0:
            self._fail(f"ended with exit code {code}")
        guess = " (out of memory?)" if -code == signal.SIGKILL else ""
        self._fail(f"killed by {_signal_name(-code)}{guess}")

    def _fail(self, reason: str) -> NoReturn:
        reason += self._last_words()
        self._kill(reason)
        raise ChildDied(reason)

    def _last_words(self) -> str:
        said = last_words(self._log)
        return f"; last lines of its log: {said}" if said else ""

    def _kill(self, reason: str) -> None:
        if not self._end:
            self._finish(reason, descendants(self.pid))

    def _finish(self, reason: str, strays: tuple[psutil.Process, ...]) -> None:
        self._end = reason
        kill_group(self.pid, strays)
        # A process stuck in a driver cannot be killed; the parent must not hang with it.
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_KILL_SECONDS)
        wait_for_group(self.pid, _KILL_SECONDS)
        self._hang_up()
        cap_log(self._log)

    def _hang_up(self) -> None:
        descriptors = (self._requests, self._replies, self._life)
        self._requests = self._replies = self._life = -1
        for descriptor in descriptors:
            if descriptor >= 0:
                os.close(descriptor)


def _spawn(
    python: str, module: str, log: Path, channel: tuple[int, ...]
) -> subprocess.Popen[bytes]:
    environment = dict(
        os.environ,
        PYTHONUNBUFFERED="1",
        PYTHONFAULTHANDLER="1",
        **{CHANNEL_VARIABLE: ",".join(map(str, channel))},
    )
    with log.open("ab") as output:
        return subprocess.Popen(  # noqa: S603, our own module, no shell
            [python, *_path_flags(), "-m", module],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=environment,
            pass_fds=channel,
            start_new_session=True,
        )


def _path_flags() -> tuple[str, ...]:
    """Keep files of the user's folder, such as ``random.py``, from shadowing modules."""
    imports_from_here = {"", str(Path.cwd())} & set(sys.path)
    return ("-P",) if sys.version_info >= (3, 11) and not imports_from_here else ()


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
