"""A loaded engine: one session with bound inputs and outputs."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from smart_tuner.backends.onnxruntime.buffers import Buffer, ElementType, element_type
from smart_tuner.backends.onnxruntime.runtime import reason
from smart_tuner.backends.onnxruntime.session import open_session, run_options
from smart_tuner.engine.running import no_collection, run_errors
from smart_tuner.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import numpy.typing as npt
    from typing_extensions import Self

    from smart_tuner.backends.onnxruntime.settings import SessionSettings
    from smart_tuner.engine.backend import Tensors

# Reading the clock twice and looping costs up to 0.2 us in Python: 1 % of this.
_SHORTEST_SAMPLE_NS = 20_000
_MOST_RUNS_A_SAMPLE = 1_000


class OnnxRuntimeRunner:
    """Runs one session on bound host memory, everything by name.

    Outputs are written into buffers that are allocated once per ``infer`` and poisoned before
    each use. Text, and outputs that are inputs under the same name (the runtime leaves a given
    buffer for those untouched), come in memory of the runtime instead and cannot be poisoned. A
    model that takes text cannot be bound at all: it runs on plain arrays.

    Attributes:
        runs_per_sample: How many runs stand behind one sample of ``time_block``; more than one
            when a run takes less than 20 us, where reading the clock would be part of the
            figure. Such a sample is the mean of its runs, so its tail says nothing, and a block
            has fewer samples than runs.
    """

    def __init__(self, model: Path, settings: SessionSettings) -> None:
        with run_errors("the engine did not load", reason):
            self._session = open_session(model, settings)
            # Run options without entries would cost 30 us a run in Python for nothing.
            self._options = run_options(settings) if settings.run_entries else None
        self._inputs = _types(self._session.get_inputs())
        self._outputs = _types(self._session.get_outputs())
        self._takes_text = any(element.is_text for element in self._inputs.values())
        self._binding: Any = None
        self._results: list[Any] = []
        self._has_run = False
        self._bound_inputs: dict[str, Buffer | npt.NDArray[np.generic]] = {}
        self._buffers: dict[str, Buffer] = {}
        self.runs_per_sample = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._binding = self._session = None
        self._buffers = {}
        self._bound_inputs = {}
        self._results = []
        self._has_run = False

    def infer(self, inputs: Tensors) -> Tensors:
        """Run once into poisoned buffers and return copies of all outputs.

        An extra run before tells the shapes of the outputs.

        Args:
            inputs: Every model input by name; other names are ignored, since an optimized model
                may have dropped inputs that nothing reads.

        Raises:
            RunError: An input is missing or of the wrong type, or the run failed.
        """
        self.runs_per_sample = 0
        self._has_run = False
        with run_errors("the engine did not run", reason):
            self._prepare(inputs)
            self._poison()
            self._run_once()
        self._has_run = True
        return self.outputs()

    def _elements(self) -> Iterator[tuple[str, ElementType]]:
        """Every input and output with its type."""
        yield from self._inputs.items()
        yield from self._outputs.items()

    def _prepare(self, inputs: Tensors) -> None:
        """Put inputs in place, and make room for the outputs."""
        self._bound_inputs = {
            name: _host_input(name, element, inputs, bind=not self._takes_text)
            for name, element in self._inputs.items()
        }
        self._buffers = {}
        if not self._takes_text:
            self._bind()
            self._run_once()
            self._allocate()
            self._bind()

    def time_block(self, iterations: int) -> tuple[float, ...]:
        """Run on the inputs of the last ``infer``; milliseconds a run, host to host.

        Raises:
            RunError: A run failed, or ``infer`` was never called.
        """
        if not self._has_run:
            msg = "time_block needs an infer first: it times the inputs of the last one"
            raise RunError(msg)
        with run_errors("the engine did not run", reason), no_collection():
            if self.runs_per_sample == 0:
                self.runs_per_sample = self._find_runs_per_sample()
            self._poison()
            samples = -(-iterations // self.runs_per_sample)
            return tuple(self._sample(self.runs_per_sample) for _ in range(samples))

    def outputs(self) -> Tensors:
        """Return copies of what the last run left in the output buffers.

        Raises:
            RunError: There was no run.
        """
        if not self._has_run:
            msg = "no outputs before the first infer"
            raise RunError(msg)
        return self._read_outputs()

    def _read_outputs(self) -> Tensors:
        if self._takes_text:
            return dict(zip(self._outputs, map(np.copy, self._results), strict=True))
        values = dict(zip(self._outputs, self._binding.get_outputs(), strict=True))
        return {
            name: self._read_output(name, element, values[name])
            for name, element in self._outputs.items()
        }

    def _read_output(self, name: str, element: ElementType, value: Any) -> npt.NDArray[np.generic]:
        """A copy of one output, from its buffer or from the runtime's memory."""
        if element.is_text:
            text: npt.NDArray[np.generic] = value.numpy()
            return text
        return self._buffers.get(name, Buffer.view(value, element)).read()

    def _bind(self) -> None:
        """Bind all inputs, and outputs to their buffers where there are any."""
        self._binding = self._session.io_binding()
        for name, value in self._bound_inputs.items():
            if isinstance(value, Buffer):
                self._binding.bind_ortvalue_input(name, value.value)
            else:
                self._binding.bind_cpu_input(name, value)
        for name in self._outputs:
            if name in self._buffers:
                self._binding.bind_ortvalue_output(name, self._buffers[name].value)
            else:
                self._binding.bind_output(name)

    def _run_once(self) -> None:
        if self._takes_text:
            self._results = self._session.run(
                list(self._outputs), self._bound_inputs, self._options
            )
        else:
            self._session.run_with_iobinding(self._binding, self._options)

    def _allocate(self) -> None:
        """Make an output buffer for every shape that the last run showed."""
        values = dict(zip(self._outputs, self._binding.get_outputs(), strict=True))
        self._buffers = {
            name: Buffer.allocate(element, tuple(values[name].shape()))
            for name, element in self._outputs.items()
            if not element.is_text and name not in self._inputs
        }

    def _poison(self) -> None:
        for buffer in self._buffers.values():
            buffer.poison()

    def _sample(self, runs: int) -> float:
        """Milliseconds a run, over consecutive runs between two looks at the clock."""
        started = time.perf_counter_ns()
        for _ in range(runs):
            self._run_once()
        return (time.perf_counter_ns() - started) / runs / 1e6

    def _find_runs_per_sample(self) -> int:
        """How many runs take long enough to be timed as one sample."""
        fastest_ns = max(1.0, min(self._sample(1) for _ in range(5)) * 1e6)
        return min(_MOST_RUNS_A_SAMPLE, math.ceil(_SHORTEST_SAMPLE_NS / fastest_ns))


def _types(arguments: list[Any]) -> dict[str, ElementType]:
    return {argument.name: element_type(argument.name, argument.type) for argument in arguments}


def _host_input(
    name: str, element: ElementType, inputs: Tensors, *, bind: bool
) -> Buffer | npt.NDArray[np.generic]:
    """One input in memory that the runtime can read."""
    array = host_array(name, element, inputs)
    if element.is_text or not bind:
        return array
    buffer = Buffer.allocate(element, array.shape)
    buffer.fill(array)
    return buffer


def host_array(name: str, element: ElementType, inputs: Tensors) -> npt.NDArray[np.generic]:
    """One input as an array of the type that the session takes.

    Raises:
        RunError: It is missing or of the wrong type.
    """
    if name not in inputs:
        msg = f"input {name} is missing"
        raise RunError(msg)
    array = np.asarray(inputs[name])
    if element.is_text:
        if array.dtype.kind not in "OUT":
            msg = f"input {name}: text is needed, {array.dtype} was given"
            raise RunError(msg)
        return array.astype(object)
    if array.dtype != element.numpy:
        msg = f"input {name}: {element.dtype} is needed, {array.dtype} was given"
        raise RunError(msg)
    return array
