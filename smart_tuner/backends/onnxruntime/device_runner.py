"""A loaded engine whose inputs and outputs lie on a device at addresses that stay.

That is what a CUDA graph needs: it replays the very addresses that it was captured with. The same
input shapes get the same tensors and the same graph again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from smart_tuner.backends.onnxruntime.runner import OnnxRuntimeRunner, host_array
from smart_tuner.backends.onnxruntime.runtime import import_runtime
from smart_tuner.backends.onnxruntime.session import run_options
from smart_tuner.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import numpy.typing as npt

    from smart_tuner.backends.onnxruntime.buffers import ElementType
    from smart_tuner.backends.onnxruntime.settings import SessionSettings
    from smart_tuner.engine.backend import Tensors

    Shapes = tuple[tuple[int, ...], ...]

_GRAPH_ID = "gpu_graph_id"
_NO_GRAPH = "-1"


@dataclass(frozen=True, slots=True)
class _Slot:
    """Tensors on the device for one set of shapes.

    Attributes:
        binding: Binds them all.
        inputs: The inputs, by name.
        outputs: The outputs, by name.
        poison: What outputs are overwritten with, by name.
        options: Run options that choose the CUDA graph of this slot; None for the first one.
    """

    binding: Any
    inputs: Mapping[str, Any]
    outputs: Mapping[str, Any]
    poison: Mapping[str, npt.NDArray[np.generic]]
    options: Any


class DeviceRunner(OnnxRuntimeRunner):
    """Runs one session on tensors of a device; ``settings.io`` says whether copies are timed.

    With ``host`` a timed run copies all inputs from the host and all outputs to it, one after the
    other, as a caller who has them there does; with ``device`` it copies nothing. Text has no
    place on a device.
    """

    def __init__(self, model: Path, settings: SessionSettings) -> None:
        super().__init__(model, settings)
        text = [name for name, element in self._elements() if element.is_text]
        if text:
            msg = f"{text[0]} is text, which cannot lie on a GPU: use --backend onnxruntime"
            raise RunError(msg)
        self._settings = settings
        self._device = "cuda" if settings.provider == "cuda" else "cpu"
        self._copies = settings.io == "host"
        # What runs without a graph tells the shapes of the outputs, and captures nothing.
        self._without_graph = run_options(settings, ((_GRAPH_ID, _NO_GRAPH),))
        self._slots: dict[Shapes, _Slot] = {}
        self._slot: _Slot | None = None
        self._fed: dict[str, npt.NDArray[np.generic]] = {}

    def __exit__(self, *exc: object) -> None:
        self._slot = None
        self._slots = {}
        self._without_graph = None
        super().__exit__(*exc)

    def _prepare(self, inputs: Tensors) -> None:
        self._fed = {
            name: np.ascontiguousarray(host_array(name, element, inputs))
            for name, element in self._inputs.items()
        }
        shapes = tuple(array.shape for array in self._fed.values())
        if shapes not in self._slots:
            self._slots[shapes] = self._make_slot(len(self._slots))
        self._slot = self._slots[shapes]
        self._copy_in(self._slot)

    def _make_slot(self, number: int) -> _Slot:
        found = self._session.run(list(self._outputs), self._fed, self._without_graph)
        shapes = {name: value.shape for name, value in zip(self._outputs, found, strict=True)}
        inputs = {
            name: self._tensor(element, self._fed[name].shape)
            for name, element in self._inputs.items()
        }
        outputs = {
            name: self._tensor(element, shapes[name]) for name, element in self._outputs.items()
        }
        binding = self._session.io_binding()
        for name, value in inputs.items():
            binding.bind_ortvalue_input(name, value)
        for name, value in outputs.items():
            binding.bind_ortvalue_output(name, value)
        poison = {name: _poisoned(self._outputs[name], shapes[name]) for name in outputs}
        # Options cost time in every run: the first slot, mostly the only one, goes without.
        options = run_options(self._settings, ((_GRAPH_ID, str(number)),)) if number else None
        return _Slot(binding, inputs, outputs, poison, options)

    def _tensor(self, element: ElementType, shape: tuple[int, ...]) -> Any:
        kind = import_runtime().OrtValue
        return kind.ortvalue_from_shape_and_type(list(shape), element.code, self._device, 0)

    def _copy_in(self, slot: _Slot) -> None:
        for name, value in slot.inputs.items():
            value.update_inplace(self._fed[name])

    def _run_once(self) -> None:
        slot = self._require_slot()
        if self._copies:
            self._copy_in(slot)
        self._session.run_with_iobinding(slot.binding, slot.options or self._options)
        if self._copies:
            for value in slot.outputs.values():
                value.numpy()

    def _poison(self) -> None:
        slot = self._require_slot()
        for name, value in slot.outputs.items():
            value.update_inplace(slot.poison[name])

    def _read_outputs(self) -> Tensors:
        slot = self._require_slot()
        return {name: np.array(value.numpy()) for name, value in slot.outputs.items()}

    def _require_slot(self) -> _Slot:
        if self._slot is None:
            msg = "no inputs before the first infer"
            raise RunError(msg)
        return self._slot


def _poisoned(element: ElementType, shape: tuple[int, ...]) -> npt.NDArray[np.generic]:
    """An array whose every byte is the element type's poison."""
    array: npt.NDArray[np.generic] = np.empty(shape, element.numpy)
    array.reshape(-1).view(np.uint8)[:] = element.poison
    return array
