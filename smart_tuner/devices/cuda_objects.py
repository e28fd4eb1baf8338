"""Things on a CUDA device that are made, used and given back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from smart_tuner.devices.cuda_calls import CudaCalls


class Event:
    """A moment in a stream."""

    __slots__ = ("_calls", "handle")

    def __init__(self, calls: CudaCalls, handle: Any) -> None:
        self._calls = calls
        self.handle = handle

    def record(self, stream: Stream) -> None:
        """Mark the moment when all that was queued so far is done."""
        self._calls("running", "cudaEventRecord", self.handle, stream.handle)

    def wait(self) -> None:
        """Sleep until the moment has come.

        Raises:
            RunError: What was queued before failed.
        """
        self._calls("running", "cudaEventSynchronize", self.handle)

    def since(self, earlier: Event) -> float:
        """Milliseconds between two moments that have come, by the device's clock."""
        elapsed = self._calls("timing", "cudaEventElapsedTime", earlier.handle, self.handle)
        return float(elapsed)

    def close(self) -> None:
        """Give it back."""
        self._calls.release("cudaEventDestroy", self.handle)


def make_event(calls: CudaCalls) -> Event:
    """Make an event that keeps the time and lets its waiters sleep."""
    flags = calls.module.cudaEventBlockingSync
    return Event(calls, calls("making an event", "cudaEventCreateWithFlags", flags))


class Stream:
    """A queue of work; run in order.

    Attributes:
        handle: For cuda-python.
        address: For TensorRT.
    """

    __slots__ = ("_calls", "_done", "address", "handle")

    def __init__(self, calls: CudaCalls, handle: Any) -> None:
        self._calls = calls
        self.handle = handle
        self.address = int(handle)
        self._done = make_event(calls)

    def wait(self) -> None:
        """Sleep until all that was queued so far is done.

        Raises:
            RunError: Some of it failed.
        """
        self._done.record(self)
        self._done.wait()

    def close(self) -> None:
        """Give it back."""
        self._done.close()
        self._calls.release("cudaStreamDestroy", self.handle)


class Graph:
    """Recorded work that is launched as a whole."""

    __slots__ = ("_calls", "handle")

    def __init__(self, calls: CudaCalls, handle: Any) -> None:
        self._calls = calls
        self.handle = handle

    def launch(self, stream: Stream) -> None:
        """Queue all of it."""
        self._calls("launching a graph", "cudaGraphLaunch", self.handle, stream.handle)

    def close(self) -> None:
        """Give it back."""
        self._calls.release("cudaGraphExecDestroy", self.handle)


@dataclass(frozen=True, slots=True)
class DeviceMemory:
    """Bytes on the device."""

    calls: CudaCalls
    address: int
    size: int

    def close(self) -> None:
        """Give them back."""
        self.calls.release("cudaFree", self.address)


@dataclass(frozen=True, slots=True)
class PinnedMemory:
    """Bytes on the host that stay where they are.

    Attributes:
        calls: What gives them back.
        address: Where the host sees them.
        size: How many.
        device_address: Where the device sees them.
        data: The bytes; not to be touched once closed.
    """

    calls: CudaCalls
    address: int
    size: int
    device_address: int
    data: npt.NDArray[np.uint8]

    def close(self) -> None:
        """Give them back."""
        self.calls.release("cudaFreeHost", self.address)
