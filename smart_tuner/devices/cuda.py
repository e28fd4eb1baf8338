"""One CUDA device: streams, events, memory, copies and graphs, over cuda-python.

Waiting always sleeps: events are made for blocking synchronisation and nothing else is waited
for. A host thread that spins would slow down whoever is measured next on the same processors, and
the figures lose nothing: they come from the device's own clock, with work queued ahead.
"""

from __future__ import annotations

import ctypes
import uuid as uuids
from dataclasses import dataclass
from typing import Any

import numpy as np

from smart_tuner.devices.cuda_calls import CudaCalls, load_runtime
from smart_tuner.devices.cuda_objects import (
    DeviceMemory,
    Event,
    Graph,
    PinnedMemory,
    Stream,
    make_event,
)
from smart_tuner.errors import EnvironmentNotFit

__all__ = [
    "Cuda",
    "CudaDevice",
    "DeviceMemory",
    "Event",
    "Graph",
    "PinnedMemory",
    "Stream",
    "open_cuda",
    "visible_devices",
]

_GRAPH_FLAGS = 0


@dataclass(frozen=True, slots=True)
class CudaDevice:
    """A device that CUDA sees.

    Attributes:
        index: Its number among the visible ones.
        name: E.g. ``NVIDIA H200``; with the profile behind it for a MIG slice.
        uuid: E.g. ``GPU-6b3c...``.
        bus_id: E.g. ``0000:3B:00.0``.
        compute_capability: E.g. ``90``.
        l2_bytes: Size of the level 2 cache.
        memory_bytes: Size of its memory.
    """

    index: int
    name: str
    uuid: str
    bus_id: str
    compute_capability: str
    l2_bytes: int
    memory_bytes: int


def visible_devices(module: Any = None) -> tuple[CudaDevice, ...]:
    """Return what CUDA sees; takes no memory on any device.

    Args:
        module: The runtime's bindings; the installed ones by default.

    Raises:
        EnvironmentNotFit: No bindings, no driver, one too old, or no device.
    """
    calls = CudaCalls(load_runtime() if module is None else module)
    count = int(calls("counting GPUs", "cudaGetDeviceCount"))
    return tuple(_describe(calls, index) for index in range(count))


def open_cuda(uuid: str = "", module: Any = None) -> Cuda:
    """Make a device this thread's.

    Args:
        uuid: Which one, as ``nvidia-smi -L`` writes it, or the beginning of it; the first visible
            one by default.
        module: The runtime's bindings; the installed ones by default.

    Raises:
        EnvironmentNotFit: There is no such device, or CUDA does not work here.
    """
    module = load_runtime() if module is None else module
    devices = visible_devices(module)
    # CUDA calls a MIG slice GPU-..., where the tools say MIG-...
    wanted = uuid.removeprefix("MIG-").removeprefix("GPU-")
    found = [device for device in devices if device.uuid[4:].startswith(wanted)]
    if not found:
        names = ", ".join(f"{device.uuid} ({device.name})" for device in devices)
        msg = f"No GPU {uuid} is visible to CUDA; there are: {names}."
        raise EnvironmentNotFit(msg)
    return Cuda(module, found[0])


class Cuda:
    """One device, and everything that is done on it.

    All methods raise RunError with the name of the CUDA error.

    Attributes:
        device: The device.
        calls: The checked calls.
    """

    def __init__(self, module: Any, device: CudaDevice) -> None:
        """Make the device current and start it."""
        self.device = device
        self.calls = CudaCalls(module)
        self._to = module.cudaMemcpyKind.cudaMemcpyDefault
        self._mode = module.cudaStreamCaptureMode.cudaStreamCaptureModeThreadLocal
        self.calls(f"opening {device.name}", "cudaSetDevice", device.index)
        self.calls(f"opening {device.name}", "cudaFree", 0)

    def free_bytes(self) -> int:
        """Device memory that is free now, whoever took the rest."""
        return int(self.calls("asking for free memory", "cudaMemGetInfo")[0])

    def stream(self) -> Stream:
        """Make a stream that does not wait for the default stream."""
        flags = self.calls.module.cudaStreamNonBlocking
        return Stream(
            self.calls, self.calls("making a stream", "cudaStreamCreateWithFlags", flags)
        )

    def event(self) -> Event:
        """Make an event that keeps the time and lets its waiters sleep."""
        return make_event(self.calls)

    def device_memory(self, size: int, what: str) -> DeviceMemory:
        """Allocate ``size`` bytes on the device; ``what`` names them in errors."""
        doing = f"allocating {size} bytes for {what}"
        return DeviceMemory(self.calls, int(self.calls(doing, "cudaMalloc", max(size, 1))), size)

    def pinned_memory(self, size: int, what: str) -> PinnedMemory:
        """Allocate ``size`` bytes on the host that the device can copy and read by itself."""
        doing = f"allocating {size} bytes of pinned host memory for {what}"
        flags = self.calls.module.cudaHostAllocMapped
        address = int(self.calls(doing, "cudaHostAlloc", max(size, 1), flags))
        seen = int(self.calls(doing, "cudaHostGetDevicePointer", address, 0))
        memory = (ctypes.c_uint8 * size).from_address(address)
        data = np.ctypeslib.as_array(memory) if size else np.empty(0, np.uint8)
        return PinnedMemory(self.calls, address, size, seen, data)

    def copy(self, target: int, source: int, size: int, stream: Stream) -> None:
        """Queue a copy between any two addresses."""
        if size:
            self.calls("copying", "cudaMemcpyAsync", target, source, size, self._to, stream.handle)

    def fill(self, target: int, value: int, size: int, stream: Stream) -> None:
        """Queue overwriting device memory with one byte value."""
        if size:
            self.calls("overwriting", "cudaMemsetAsync", target, value, size, stream.handle)

    def begin_capture(self, stream: Stream) -> None:
        """Record what is queued on a stream from now on, instead of running it."""
        self.calls("capturing", "cudaStreamBeginCapture", stream.handle, self._mode)
        self.calls.is_capturing = True

    def end_capture(self, stream: Stream) -> Graph:
        """Make a graph of what was recorded.

        Raises:
            RunError: Something that was queued cannot be part of a graph.
        """
        self.calls.is_capturing = False
        recorded = self.calls("capturing", "cudaStreamEndCapture", stream.handle)
        try:
            ready = self.calls("making a graph", "cudaGraphInstantiate", recorded, _GRAPH_FLAGS)
        finally:
            self.calls.release("cudaGraphDestroy", recorded)
        return Graph(self.calls, ready)

    def drop_capture(self, stream: Stream) -> None:
        """End a recording that went wrong and forget its errors; the stream is usable again."""
        self.calls.is_capturing = False
        if not self.calls.is_broken:
            self.calls.module.cudaStreamEndCapture(stream.handle)
            self.calls.module.cudaGetLastError()
            self.calls.check("capturing")


def _describe(calls: CudaCalls, index: int) -> CudaDevice:
    facts = calls("asking for a GPU's properties", "cudaGetDeviceProperties", index)
    bus = calls("asking for a GPU's address", "cudaDeviceGetPCIBusId", 32, index)
    return CudaDevice(
        index=index,
        name=_text(facts.name),
        uuid=f"GPU-{uuids.UUID(bytes=bytes(facts.uuid.bytes))}",
        bus_id=_text(bus),
        compute_capability=f"{facts.major}{facts.minor}",
        l2_bytes=int(facts.l2CacheSize),
        memory_bytes=int(facts.totalGlobalMem),
    )


def _text(value: bytes | str) -> str:
    raw = value if isinstance(value, bytes) else value.encode()
    return raw.split(b"\0")[0].decode(errors="replace")
