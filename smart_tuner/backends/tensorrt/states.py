"""States: inputs that the run overwrites, put back before every run that counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from smart_tuner.backends.tensorrt.buffers import Buffer
    from smart_tuner.devices.cuda import Cuda, DeviceMemory, Stream


class States:
    """Copies of the states on the device, as they were given.

    A KV cache lives on the device: bringing it there and putting it back is not part of a run.
    """

    def __init__(self, cuda: Cuda, buffers: tuple[Buffer, ...]) -> None:
        """Allocate a copy of each.

        Args:
            cuda: The device.
            buffers: The inputs that are overwritten.
        """
        self._cuda = cuda
        self._kept: list[tuple[Buffer, DeviceMemory]] = []
        for buffer in buffers:
            size = buffer.layout.nbytes
            self._kept.append((buffer, cuda.device_memory(size, f"the state {buffer.name}")))

    @property
    def device_bytes(self) -> int:
        """Device memory that the copies take."""
        return sum(memory.size for _, memory in self._kept)

    def keep(self, stream: Stream) -> None:
        """Queue bringing the states to the device, and copying them."""
        for buffer, memory in self._kept:
            buffer.copy_in(stream)
            self._cuda.copy(memory.address, buffer.address, memory.size, stream)

    def restore(self, stream: Stream) -> None:
        """Queue putting the states back."""
        for buffer, memory in self._kept:
            self._cuda.copy(buffer.address, memory.address, memory.size, stream)

    def close(self) -> None:
        """Give the memory back."""
        for _, memory in self._kept:
            memory.close()
