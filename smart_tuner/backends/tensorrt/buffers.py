"""Memory of one input or output: pinned on the host, and on the device where it is copied."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from smart_tuner.backends.tensorrt import api
from smart_tuner.backends.tensorrt.layout import Layout
from smart_tuner.errors import RunError

if TYPE_CHECKING:
    import numpy.typing as npt

    from smart_tuner.backends.tensorrt.elements import Element
    from smart_tuner.devices.cuda import Cuda, DeviceMemory, PinnedMemory, Stream

    Array = npt.NDArray[np.generic]


class Buffer:
    """An input or output whose size is known before the run.

    Attributes:
        name: Name of the tensor.
        layout: Where its elements lie.
        address: What the engine is given.
    """

    def __init__(self, cuda: Cuda, name: str, layout: Layout) -> None:
        """Allocate on host and device."""
        self._cuda = cuda
        self.name = name
        self.layout = layout
        self._host = cuda.pinned_memory(layout.nbytes, name)
        self._device: DeviceMemory | None = None
        self._is_copied = False
        self.address = 0

    @property
    def device_bytes(self) -> int:
        """Device memory that it holds itself."""
        return self._device.size if self._device is not None else 0

    def on_device(self) -> Buffer:
        """Take device memory: what runs is copied there and back."""
        self._device = self._cuda.device_memory(self.layout.nbytes, self.name)
        self._is_copied = True
        self.address = self._device.address
        return self

    def on_host(self) -> Buffer:
        """Let the engine use the host's memory from the host."""
        self.address = self._host.address
        return self

    def mapped(self) -> Buffer:
        """Let the device use the host's memory, without copies."""
        self.address = self._host.device_address
        return self

    def sharing(self, other: Buffer) -> Buffer:
        """Overwrite the memory of another one.

        Raises:
            RunError: It is of another size.
        """
        if other.layout.nbytes != self.layout.nbytes:
            msg = (
                f"{self.name} ({self.layout.nbytes} bytes) cannot overwrite {other.name} "
                f"({other.layout.nbytes} bytes): a state keeps its size"
            )
            raise RunError(msg)
        self._is_copied = True
        self.address = other.address
        return self

    def write(self, array: Array) -> None:
        """Put an array into the host's memory."""
        if array.shape != self.layout.shape:
            msg = f"input {self.name}: shape {array.shape} is not {self.layout.shape}"
            raise RunError(msg)
        self.layout.write(array, self._host.data)

    def read(self) -> Array:
        """Return a copy of what the host's memory holds."""
        return self.layout.read(self._host.data)

    def copy_in(self, stream: Stream) -> None:
        """Queue the copy to the device, if there is one to make."""
        if self._is_copied:
            self._cuda.copy(self.address, self._host.address, self._host.size, stream)

    def copy_out(self, stream: Stream) -> None:
        """Queue the copy to the host, if there is one to make."""
        if self._is_copied:
            self._cuda.copy(self._host.address, self.address, self._host.size, stream)

    def poison(self, stream: Stream) -> None:
        """Overwrite the content with NaN, or with a pattern where there is no NaN.

        What lies on the host is overwritten at once: nothing may be running.
        """
        value = self.layout.element.poison
        self._host.data[:] = value
        if self._device is not None:
            self._cuda.fill(self.address, value, self.layout.nbytes, stream)

    def close(self) -> None:
        """Give the memory back."""
        self._host.close()
        if self._device is not None:
            self._device.close()


class GrowingBuffer:
    """An output whose shape only the run finds out; the engine asks for memory as it needs it.

    Attributes:
        name: Name of the tensor.
        native: The SDK's object that the engine talks to.
    """

    def __init__(self, cuda: Cuda, name: str, element: Element, module: api.Module) -> None:
        """Begin without memory."""
        self._cuda = cuda
        self.name = name
        self._element = element
        self._device: DeviceMemory | None = None
        self._host: PinnedMemory | None = None
        self._shape: tuple[int, ...] | None = None
        self._error: RunError | None = None
        self.native = _derive(module, self._grow, self._take_shape)

    @property
    def device_bytes(self) -> int:
        """Device memory that it holds."""
        return self._device.size if self._device is not None else 0

    def check(self) -> None:
        """Raise what went wrong when the engine asked for memory: it cannot be raised there.

        Raises:
            RunError: There was no memory.
        """
        error, self._error = self._error, None
        if error is not None:
            raise error

    def read(self) -> Array:
        """Return a copy of what the host's memory holds."""
        layout = self._layout()
        if self._host is None:
            return np.empty(layout.shape, self._element.numpy)
        return layout.read(self._host.data)

    def copy_out(self, stream: Stream) -> None:
        """Queue the copy of what the last run gave."""
        size = self._layout().nbytes
        if self._device is None or not size:
            return
        if self._host is None or self._host.size < size:
            if self._host is not None:
                self._host.close()
            self._host = self._cuda.pinned_memory(size, self.name)
        self._cuda.copy(self._host.address, self._device.address, size, stream)

    def poison(self, stream: Stream) -> None:
        """Overwrite the memory and forget the shape."""
        self._shape = None
        if self._device is not None:
            value = self._element.poison
            self._cuda.fill(self._device.address, value, self._device.size, stream)

    def close(self) -> None:
        """Give the memory back."""
        for memory in (self._device, self._host):
            if memory is not None:
                memory.close()

    def _layout(self) -> Layout:
        if self._shape is None:
            msg = f"the engine did not say which shape output {self.name} has"
            raise RunError(msg)
        return Layout(self._element, self._shape)

    def _grow(self, size: int) -> int:
        """Address of at least ``size`` bytes; 0 if there are none."""
        try:
            if self._device is None or self._device.size < size:
                if self._device is not None:
                    self._device.close()
                    self._device = None
                self._device = self._cuda.device_memory(max(size, 1), self.name)
        except RunError as error:
            self._error = error
            return 0
        return self._device.address

    def _take_shape(self, shape: tuple[int, ...]) -> None:
        self._shape = shape


def _derive(module: api.Module, grow: Any, take_shape: Any) -> api.OutputAllocator:
    """Make an object of a class derived from the SDK's, which is only known at run time."""
    if not isinstance(module, api.HasAllocatorClass):
        msg = "this version cannot run outputs whose shape depends on data: it has no IOutputAllocator"
        raise RunError(msg)
    base = module.IOutputAllocator

    def start(self: object) -> None:
        base.__init__(self)

    def reallocate(_self: object, _name: str, _memory: int, size: int, _alignment: int) -> int:
        return int(grow(size))

    def reallocate_async(
        _self: object, _name: str, _memory: int, size: int, _alignment: int, _stream: int
    ) -> int:
        return int(grow(size))

    def notify(_self: object, _name: str, shape: Any) -> None:
        take_shape(tuple(int(extent) for extent in shape))

    members = {
        "__init__": start,
        "reallocate_output": reallocate,
        "reallocate_output_async": reallocate_async,
        "notify_shape": notify,
    }
    made: api.OutputAllocator = type("SmartTunerAllocator", (base,), members)()
    return made
