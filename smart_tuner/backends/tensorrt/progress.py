"""A build's progress in the log, and a clean end for a build that nobody waits for any more."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from smart_tuner.backends.tensorrt import api

if TYPE_CHECKING:
    from typing_extensions import Self

    from smart_tuner.backends.tensorrt.sdk import Sdk

_SAY_EVERY_SECONDS = 5.0


class Cancellation:
    """Whether this process was told to end (SIGTERM, Ctrl-C) while a build ran.

    Python runs signal handlers only between its own instructions, and a build is one call that
    takes minutes. The signal's number is written to a pipe at once, whatever Python does, and the
    progress monitor looks there.
    """

    def __init__(self) -> None:
        """Does nothing until entered."""
        self._is_main = threading.current_thread() is threading.main_thread()
        self._requested = False
        self._read = self._write = self._old_descriptor = -1
        self._old_handler: Any = None

    def __enter__(self) -> Self:
        if self._is_main:
            self._read, self._write = os.pipe()
            os.set_blocking(self._write, False)
            self._old_handler = signal.signal(signal.SIGTERM, lambda *_: None)
            self._old_descriptor = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        return self

    def __exit__(self, *exc: object) -> None:
        if self._is_main:
            self.is_requested  # noqa: B018 - the pipe is about to be closed
            signal.set_wakeup_fd(self._old_descriptor)
            signal.signal(signal.SIGTERM, self._old_handler)
            os.close(self._read)
            os.close(self._write)
            self._read = -1

    @property
    def is_requested(self) -> bool:
        """Whether the build should end."""
        while self._read >= 0 and select.select([self._read], [], [], 0)[0]:
            numbers = os.read(self._read, 64)
            self._requested |= bool({signal.SIGTERM, signal.SIGINT} & set(numbers))
        return self._requested


class Progress:
    """What a monitor does: says the phases, and ends the build when that is asked for."""

    def __init__(self, cancellation: Cancellation) -> None:
        """Watch a cancellation."""
        self._cancellation = cancellation
        self._steps: dict[str, int] = {}
        self._spoke = time.perf_counter()

    def phase_start(self, phase_name: str, parent_phase: str | None, num_steps: int) -> None:
        """Note a phase; only the outermost is said at once."""
        self._steps[phase_name] = num_steps
        if not parent_phase:
            self._say(f"{phase_name}: {num_steps} steps")

    def step_complete(self, phase_name: str, step: int) -> bool:
        """Return whether the build goes on."""
        if time.perf_counter() - self._spoke > _SAY_EVERY_SECONDS:
            self._say(f"{phase_name}: step {step + 1} of {self._steps.get(phase_name, 0)}")
        return not self._cancellation.is_requested

    def phase_finish(self, phase_name: str) -> None:
        """Forget a phase."""
        self._steps.pop(phase_name, None)

    def _say(self, text: str) -> None:
        self._spoke = time.perf_counter()
        sys.stderr.write(f"progress: {text}\n")


def attach_progress(
    sdk: Sdk, config: api.BuilderConfig, cancellation: Cancellation
) -> api.ProgressMonitor | None:
    """Let a build report; returns the monitor, which must outlive it, None where there is none."""
    module = sdk.module
    if not isinstance(module, api.HasMonitorClass) or not isinstance(
        config, api.HasProgressMonitor
    ):
        return None
    monitor: api.ProgressMonitor = _derive(module.IProgressMonitor, Progress(cancellation))
    config.progress_monitor = monitor
    return monitor


def _derive(base: type[Any], progress: Progress) -> Any:
    """Make an object of a class derived from the SDK's, which is only known at run time."""

    def start(self: object) -> None:
        base.__init__(self)

    body: dict[str, Any] = {
        "__init__": start,
        "phase_start": lambda _, *told: progress.phase_start(*told),
        "step_complete": lambda _, *told: progress.step_complete(*told),
        "phase_finish": lambda _, *told: progress.phase_finish(*told),
    }
    return type("SmartTunerMonitor", (base,), body)()
