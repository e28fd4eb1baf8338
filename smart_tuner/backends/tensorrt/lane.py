"""One context on one stream, with memory for its inputs and outputs: what runs an engine."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import numpy as np

from smart_tuner.backends.tensorrt.buffers import Buffer, GrowingBuffer
from smart_tuner.backends.tensorrt.elements import converted
from smart_tuner.backends.tensorrt.graph import capture
from smart_tuner.backends.tensorrt.layout import layout_of
from smart_tuner.backends.tensorrt.ports import choose_profile
from smart_tuner.backends.tensorrt.states import States
from smart_tuner.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from smart_tuner.backends.tensorrt.loading import LoadedEngine
    from smart_tuner.backends.tensorrt.ports import Port
    from smart_tuner.devices.cuda import Cuda, DeviceMemory, Graph

    Array = npt.NDArray[np.generic]

_COLD_FACTOR = 2


class Lane:
    """Runs one inference at a time.

    A run is ``copy_in``, ``compute``, ``copy_out``; each only queues work. Before a run that
    counts comes ``prepare``, which is no part of it.

    Attributes:
        stream: Where the work is queued.
        uses_graphs: Whether ``compute`` and ``run`` launch graphs.
        has_pauses: Whether ``prepare`` does anything, so that runs cannot follow each other.
    """

    def __init__(self, cuda: Cuda, loaded: LoadedEngine) -> None:
        """Make a context; memory comes with the first inputs.

        Raises:
            RunError: There is no room for a context.
        """
        self._cuda = cuda
        self._loaded = loaded
        self._io = loaded.settings.io
        self._context = loaded.make_context()
        self.stream = cuda.stream()
        self.uses_graphs = False
        self.has_pauses = loaded.settings.cold_l2 or any(port.shares for port in loaded.ports)
        self._flush = self._flush_memory()
        self._shapes: dict[str, tuple[int, ...]] | None = None
        self._owned = ExitStack()
        self._buffers: dict[str, Buffer] = {}
        self._growing: dict[str, GrowingBuffer] = {}
        self._states: States | None = None
        self._graphs: dict[str, Graph] = {}
        self._moved_in: list[Buffer] = []
        self._moved_out: list[Buffer | GrowingBuffer] = []

    @property
    def device_bytes(self) -> int:
        """Device memory that it holds beside the context's own."""
        buffers: list[Buffer | GrowingBuffer] = [*self._buffers.values()]
        buffers += self._growing.values()
        flush = self._flush.size if self._flush is not None else 0
        states = self._states.device_bytes if self._states is not None else 0
        return sum(buffer.device_bytes for buffer in buffers) + flush + states

    def feed(self, inputs: Mapping[str, Array]) -> None:
        """Bring inputs, and run once on them: what happens only once is then behind.

        Memory and graphs are kept for as long as the shapes stay the same.

        Raises:
            RunError: An input is missing, or of a type or shape that the engine does not take.
        """
        arrays = {port.name: _given(port, inputs) for port in self._loaded.ports if port.is_input}
        shapes = {name: array.shape for name, array in arrays.items()}
        if shapes != self._shapes or self._has_shape_data():
            self._forget()
            self._set_up(arrays)
            self._shapes = shapes
        for name, array in arrays.items():
            self._buffers[name].write(array)
            self._buffers[name].copy_in(self.stream)
        if self._states is not None:
            self._states.keep(self.stream)
        self._execute()
        self.stream.wait()

    def use_graphs(self) -> None:
        """Launch graphs from now on.

        Raises:
            RunError: The engine cannot be captured.
        """
        if self._growing:
            names = ", ".join(self._growing)
            msg = (
                "the engine cannot be captured in a CUDA graph: the shape of its output "
                f"{names} depends on data"
            )
            raise RunError(msg)
        if "compute" not in self._graphs:
            self._graphs["compute"] = capture(self._cuda, self.stream, self._execute)
            self._graphs["run"] = capture(self._cuda, self.stream, self._run)
        self.uses_graphs = True

    def prepare(self) -> None:
        """Queue what comes before a run that counts: states put back, the cache overwritten."""
        if self._states is not None:
            self._states.restore(self.stream)
        if self._flush is not None:
            self._cuda.fill(self._flush.address, 0, self._flush.size, self.stream)

    def copy_in(self) -> None:
        """Queue the copies of the inputs that are brought for each run."""
        for buffer in self._moved_in:
            buffer.copy_in(self.stream)

    def compute(self) -> None:
        """Queue the engine."""
        if self.uses_graphs:
            self._graphs["compute"].launch(self.stream)
        else:
            self._execute()

    def copy_out(self) -> None:
        """Queue the copies of the outputs that are fetched after each run."""
        for buffer in self._moved_out:
            buffer.copy_out(self.stream)

    def run(self) -> None:
        """Queue copies in, engine and copies out."""
        if self.uses_graphs:
            self._graphs["run"].launch(self.stream)
        else:
            self._run()

    def poison(self) -> None:
        """Overwrite the outputs; nothing may be running."""
        for port in self._loaded.ports:
            if not port.is_input and not port.shares:
                self._output(port.name).poison(self.stream)

    def outputs(self) -> dict[str, Array]:
        """Fetch all outputs of the last run and return copies."""
        names = [port.name for port in self._loaded.ports if not port.is_input]
        for name in names:
            self._output(name).copy_out(self.stream)
        self.stream.wait()
        return {name: self._output(name).read() for name in names}

    def close(self) -> None:
        """Give everything back; nothing else may be asked of it then."""
        self._forget()
        # Contexts go before their engine.
        del self._context
        del self._loaded
        if self._flush is not None:
            self._flush.close()
        self.stream.close()

    def _run(self) -> None:
        self.copy_in()
        self._execute()
        self.copy_out()

    def _execute(self) -> None:
        since = self._loaded.log.position
        is_queued = self._context.execute_async_v3(self.stream.address)
        for buffer in self._growing.values():
            buffer.check()
        if not is_queued:
            raise self._loaded.failure("the engine did not run", since)

    def _output(self, name: str) -> Buffer | GrowingBuffer:
        return self._growing[name] if name in self._growing else self._buffers[name]

    def _has_shape_data(self) -> bool:
        """Whether values of inputs decide shapes, so that equal shapes of inputs say little."""
        return any(port.is_input and port.is_on_host for port in self._loaded.ports)

    def _forget(self) -> None:
        """Give back what belongs to the shapes that were."""
        self._shapes = None
        self.uses_graphs = False
        self._owned.close()
        self._buffers, self._growing, self._graphs = {}, {}, {}
        self._moved_in, self._moved_out, self._states = [], [], None

    def _set_up(self, arrays: Mapping[str, Array]) -> None:
        """Tell the context the shapes, and allocate memory as it asks for."""
        self._owned.callback(self._close_graphs)
        self._take_profile(arrays)
        ports = self._loaded.ports
        for port in ports:
            if port.is_input:
                self._set_up_input(port, arrays[port.name])
        self._loaded.infer_shapes(self._context)
        for port in ports:
            if not port.is_input:
                self._set_up_output(port)
        shared = dict.fromkeys(port.shares for port in ports if port.shares)
        if shared:
            self._states = States(self._cuda, tuple(self._buffers[name] for name in shared))
            self._owned.callback(self._states.close)
        if self._io == "host":
            self._moved_in = [
                self._buffers[port.name]
                for port in ports
                if port.is_input and port.name not in shared
            ]
            self._moved_out = [
                self._output(port.name) for port in ports if not port.is_input and not port.shares
            ]

    def _close_graphs(self) -> None:
        for graph in self._graphs.values():
            graph.close()

    def _take_profile(self, arrays: Mapping[str, Array]) -> None:
        engine, loaded = self._loaded.engine, self._loaded
        on_device = {
            port.name: arrays[port.name].shape
            for port in loaded.ports
            if port.is_input and not port.is_on_host
        }
        profile = choose_profile(engine, on_device)
        loaded.do(
            f"choosing profile {profile}",
            self._context.set_optimization_profile_async,
            profile,
            self.stream.address,
        )
        self.stream.wait()

    def _set_up_input(self, port: Port, array: Array) -> None:
        loaded = self._loaded
        doing = f"setting input {port.name} to shape {array.shape}"
        loaded.do(doing, self._context.set_input_shape, port.name, array.shape)
        buffer = self._buffer(port)
        # Inputs on the host decide shapes, so their values have to be there first.
        buffer.write(array)
        self._give(port, buffer.address)

    def _set_up_output(self, port: Port) -> None:
        shape = self._context.get_tensor_shape(port.name)
        if not any(size < 0 for size in shape):
            self._give(port, self._buffer(port).address)
            return
        growing = GrowingBuffer(self._cuda, port.name, port.element, self._loaded.module)
        self._growing[port.name] = growing
        self._owned.callback(growing.close)
        self._loaded.do(
            f"giving output {port.name} memory",
            self._context.set_output_allocator,
            port.name,
            growing.native,
        )

    def _buffer(self, port: Port) -> Buffer:
        """Memory of the size that the context asks for, where the port wants it."""
        layout = layout_of(self._loaded.engine, self._context, port.name, port.element)
        buffer = Buffer(self._cuda, port.name, layout)
        self._owned.callback(buffer.close)
        self._buffers[port.name] = buffer
        if port.shares:
            return buffer.sharing(self._buffers[port.shares])
        if port.is_on_host:
            return buffer.on_host()
        return buffer.mapped() if self._io == "zero_copy" else buffer.on_device()

    def _give(self, port: Port, address: int) -> None:
        doing = f"giving {port.name} memory"
        self._loaded.do(doing, self._context.set_tensor_address, port.name, address)

    def _flush_memory(self) -> DeviceMemory | None:
        if not self._loaded.settings.cold_l2:
            return None
        size = _COLD_FACTOR * max(self._cuda.device.l2_bytes, 1 << 20)
        return self._cuda.device_memory(size, "overwriting the level 2 cache")


def _given(port: Port, inputs: Mapping[str, Array]) -> Array:
    if port.name not in inputs:
        msg = f"input {port.name} is missing"
        raise RunError(msg)
    return converted(port.name, np.asarray(inputs[port.name]), port.element)
