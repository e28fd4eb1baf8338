"""cuda-python's runtime module in memory: numpy for device memory, a clock that work moves on.

Work runs when it is queued, unless its stream is being recorded. What the real runtime does with
errors is kept: a sticky one comes back from every later call, a recording that met a forbidden
call is lost, memory runs out.
"""
# ruff: noqa: N802, N815 - spelt as the real module spells them

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from enum import IntEnum
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

Work = tuple[float, "Callable[[], None]"]
LAUNCH_MS = 0.002


class Status(IntEnum):
    cudaSuccess = 0
    cudaErrorInvalidValue = 1
    cudaErrorMemoryAllocation = 2
    cudaErrorInitializationError = 3
    cudaErrorInsufficientDriver = 35
    cudaErrorNoDevice = 100
    cudaErrorIllegalAddress = 700
    cudaErrorStreamCaptureUnsupported = 900
    cudaErrorStreamCaptureInvalidated = 901


@dataclass
class Recording:
    works: list[Work] = field(default_factory=list)
    is_valid: bool = True


@dataclass
class FakeCuda:
    """One GPU.

    Attributes:
        memory_bytes: Its memory.
        now_ms: The device's clock.
        driver: CUDA version of the driver; 0 for none.
        count: Number of GPUs.
        fail: Status that a function gives, once, by its name.
        sticky: Status that every call gives from now on.
        log: Names of the functions that were called.
    """

    memory_bytes: int = 1 << 30
    now_ms: float = 0.0
    driver: int = 13000
    count: int = 1
    fail: dict[str, Status] = field(default_factory=dict)
    sticky: Status | None = None
    log: list[str] = field(default_factory=list)
    device: dict[int, npt.NDArray[np.uint8]] = field(default_factory=dict)
    pinned: dict[int, npt.NDArray[np.uint8]] = field(default_factory=dict)
    events: dict[int, float] = field(default_factory=dict)
    recordings: dict[int, Recording] = field(default_factory=dict)
    graphs: dict[int, list[Work]] = field(default_factory=dict)
    handles: int = 0

    cudaError_t = Status
    cudaMemcpyKind = SimpleNamespace(cudaMemcpyDefault=4)
    cudaStreamCaptureMode = SimpleNamespace(cudaStreamCaptureModeThreadLocal=1)
    cudaStreamNonBlocking = 1
    cudaEventBlockingSync = 1
    cudaHostAllocMapped = 2

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if not name.startswith("cuda") or not callable(found) or isinstance(found, type):
            return found
        return lambda *arguments: self._call(name, found, arguments)

    def _call(self, name: str, function: Callable[..., Any], arguments: Any) -> Any:
        self.log.append(name)
        if name in {"cudaGetErrorString", "cudaDriverGetVersion", "cudaRuntimeGetVersion"}:
            return function(*arguments)
        if self.driver == 0 or self.driver < 12000:
            return (Status.cudaErrorInsufficientDriver, None)
        if self.count == 0:
            return (Status.cudaErrorNoDevice, None)
        if self.sticky is not None:
            return (self.sticky, None)
        if name in self.fail:
            return (self.fail.pop(name), None)
        return function(*arguments)

    def queue(self, stream: int, milliseconds: float, action: Callable[[], None]) -> None:
        """What a kernel launch does; the SDK's fake calls it too."""
        recording = self.recordings.get(stream)
        if recording is not None:
            recording.works.append((milliseconds, action))
            return
        self.now_ms += milliseconds
        action()

    def breaks(self, status: Status) -> None:
        """A kernel went wrong beyond repair."""
        self.sticky = status

    def spoil(self, stream: int) -> None:
        """A call that cannot be recorded was made."""
        if stream in self.recordings:
            self.recordings[stream].is_valid = False

    @property
    def used_bytes(self) -> int:
        return sum(block.size for block in self.device.values())

    def _handle(self) -> int:
        self.handles += 1
        return self.handles

    # ------------------------------------------------------------ devices

    def cudaGetDeviceCount(self) -> Any:
        return (Status.cudaSuccess, self.count)

    def cudaGetDeviceProperties(self, index: int) -> Any:
        facts = SimpleNamespace(
            name=b"Fake GPU\0\0",
            uuid=SimpleNamespace(bytes=bytes([index] * 16)),
            major=9,
            minor=0,
            l2CacheSize=1 << 20,
            totalGlobalMem=self.memory_bytes,
        )
        return (Status.cudaSuccess, facts)

    def cudaDeviceGetPCIBusId(self, _length: int, index: int) -> Any:
        return (Status.cudaSuccess, f"0000:0{index}:00.0".encode())

    def cudaSetDevice(self, _index: int) -> Any:
        return (Status.cudaSuccess,)

    def cudaDeviceSynchronize(self) -> Any:
        if self.recordings:
            for recording in self.recordings.values():
                recording.is_valid = False
            return (Status.cudaErrorStreamCaptureUnsupported,)
        return (Status.cudaSuccess,)

    def cudaGetLastError(self) -> Any:
        return (Status.cudaSuccess,)

    def cudaGetErrorString(self, status: Status) -> Any:
        return (Status.cudaSuccess, f"words for {int(status)}".encode())

    def cudaDriverGetVersion(self) -> Any:
        return (Status.cudaSuccess, self.driver)

    def cudaRuntimeGetVersion(self) -> Any:
        return (Status.cudaSuccess, 12090)

    # ------------------------------------------------------------ memory

    def cudaMemGetInfo(self) -> Any:
        return (Status.cudaSuccess, self.memory_bytes - self.used_bytes, self.memory_bytes)

    def cudaMalloc(self, size: int) -> Any:
        if self.used_bytes + size > self.memory_bytes:
            return (Status.cudaErrorMemoryAllocation, None)
        block = np.zeros(size, np.uint8)
        self.device[block.ctypes.data] = block
        return (Status.cudaSuccess, block.ctypes.data)

    def cudaFree(self, address: int) -> Any:
        if address:
            del self.device[address]
        return (Status.cudaSuccess,)

    def cudaHostAlloc(self, size: int, _flags: int) -> Any:
        block = np.zeros(size, np.uint8)
        self.pinned[block.ctypes.data] = block
        return (Status.cudaSuccess, block.ctypes.data)

    def cudaHostGetDevicePointer(self, address: int, _flags: int) -> Any:
        return (Status.cudaSuccess, address)

    def cudaFreeHost(self, address: int) -> Any:
        del self.pinned[address]
        return (Status.cudaSuccess,)

    def cudaMemcpyAsync(self, target: int, source: int, size: int, _kind: int, stream: int) -> Any:
        self.queue(stream, size * 1e-6, lambda: void(ctypes.memmove(target, source, size)))
        return (Status.cudaSuccess,)

    def cudaMemsetAsync(self, target: int, value: int, size: int, stream: int) -> Any:
        self.queue(stream, size * 1e-6, lambda: void(ctypes.memset(target, value, size)))
        return (Status.cudaSuccess,)

    # ------------------------------------------------------------ streams and events

    def cudaStreamCreateWithFlags(self, _flags: int) -> Any:
        return (Status.cudaSuccess, self._handle())

    def cudaStreamDestroy(self, _stream: int) -> Any:
        return (Status.cudaSuccess,)

    def cudaEventCreateWithFlags(self, _flags: int) -> Any:
        return (Status.cudaSuccess, self._handle())

    def cudaEventDestroy(self, event: int) -> Any:
        self.events.pop(event, None)
        return (Status.cudaSuccess,)

    def cudaEventRecord(self, event: int, _stream: int) -> Any:
        self.events[event] = self.now_ms
        return (Status.cudaSuccess,)

    def cudaEventSynchronize(self, _event: int) -> Any:
        return (Status.cudaSuccess,)

    def cudaEventElapsedTime(self, start: int, end: int) -> Any:
        return (Status.cudaSuccess, self.events[end] - self.events[start])

    # ------------------------------------------------------------ graphs

    def cudaStreamBeginCapture(self, stream: int, _mode: int) -> Any:
        self.recordings[stream] = Recording()
        return (Status.cudaSuccess,)

    def cudaStreamEndCapture(self, stream: int) -> Any:
        recording = self.recordings.pop(stream)
        if not recording.is_valid:
            return (Status.cudaErrorStreamCaptureInvalidated, None)
        handle = self._handle()
        self.graphs[handle] = recording.works
        return (Status.cudaSuccess, handle)

    def cudaGraphInstantiate(self, graph: int, _flags: int) -> Any:
        handle = self._handle()
        self.graphs[handle] = self.graphs[graph]
        return (Status.cudaSuccess, handle)

    def cudaGraphLaunch(self, graph: int, stream: int) -> Any:
        for milliseconds, action in self.graphs[graph]:
            self.queue(stream, milliseconds, action)
        return (Status.cudaSuccess,)

    def cudaGraphDestroy(self, graph: int) -> Any:
        del self.graphs[graph]
        return (Status.cudaSuccess,)

    def cudaGraphExecDestroy(self, graph: int) -> Any:
        del self.graphs[graph]
        return (Status.cudaSuccess,)


def void(_value: object) -> None:
    """Drop a value."""
