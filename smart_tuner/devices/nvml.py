"""NVML, NVIDIA's management library: asked for one fact at a time, any of which may be missing."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Any

Handle = Any
"""NVML's handle of a GPU."""


class Nvml:
    """Answers what it can and None for the rest: Jetson and virtual GPUs lack much of it."""

    def __init__(self, module: Any = None) -> None:
        """Ask ``module``, which is ``pynvml`` after ``nvmlInit``; nothing is known without one."""
        self._module = module

    def get(self, function: str, *arguments: object, constant: str = "") -> Any:
        """Ask one function; None where it is missing or refuses.

        Args:
            function: Its name.
            arguments: Its arguments.
            constant: Name of a constant of NVML that is its last argument.
        """
        call = getattr(self._module, function, None)
        last = [getattr(self._module, constant, None)] if constant else []
        if call is None or None in last:
            return None
        try:
            return call(*arguments, *last)
        except (self._module.NVMLError, TypeError, ValueError, UnicodeDecodeError):
            return None

    def number(self, function: str, *arguments: object, constant: str = "") -> int | None:
        """Ask for a whole number."""
        value = self.get(function, *arguments, constant=constant)
        return int(value) if isinstance(value, int | float) else None

    def text(self, function: str, *arguments: object) -> str | None:
        """Ask for a text."""
        value = self.get(function, *arguments)
        if value is None:
            return None
        return value.decode(errors="replace") if isinstance(value, bytes) else str(value)

    def pids(self, function: str, *arguments: object) -> tuple[int, ...] | None:
        """Ask for processes."""
        found = self.get(function, *arguments)
        return None if found is None else tuple(sorted({int(process.pid) for process in found}))

    def handles(self) -> tuple[Handle, ...]:
        """All GPUs."""
        count = self.number("nvmlDeviceGetCount") or 0
        found = [self.get("nvmlDeviceGetHandleByIndex", index) for index in range(count)]
        return tuple(handle for handle in found if handle is not None)

    def handle(self, uuid: str) -> Handle | None:
        """One GPU, by its id or its PCI address; the first one if none is named."""
        if not uuid:
            return next(iter(self.handles()), None)
        found = self.get("nvmlDeviceGetHandleByUUID", uuid)
        if found is None and uuid.startswith("GPU-"):
            # What CUDA calls GPU-... may be a slice, which NVML calls MIG-...
            found = self.get("nvmlDeviceGetHandleByUUID", f"MIG-{uuid[4:]}")
        return found if found is not None else self.get("nvmlDeviceGetHandleByPciBusId", uuid)


@lru_cache(maxsize=1)
def find_nvml() -> Nvml:
    """Load NVML; without nvidia-ml-py or a driver, one that knows nothing."""
    try:
        module = import_module("pynvml")
    except ImportError:
        return Nvml()
    try:
        module.nvmlInit()
    except module.NVMLError:
        return Nvml()
    return Nvml(module)
