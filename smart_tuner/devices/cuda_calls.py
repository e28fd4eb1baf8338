"""Calls into the CUDA runtime: every status is checked, and a broken context stays broken."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from smart_tuner.errors import EnvironmentNotFit, RunError

if TYPE_CHECKING:
    from types import ModuleType

    from smart_tuner.errors import SmartTunerError

MODULES = ("cuda.bindings.runtime", "cuda.cudart")
"""Where cuda-python keeps the runtime: since 12.6, and before."""

_NO_DEVICE = "cudaErrorNoDevice"
_OUT_OF_MEMORY = "cudaErrorMemoryAllocation"
_OLD_DRIVER = "cudaErrorInsufficientDriver"
_ENVIRONMENT = {
    "cudaErrorInitializationError": "see whether `nvidia-smi` works, and restart the process",
    "cudaErrorDevicesUnavailable": (
        "the GPU is in exclusive mode and taken: end the other process, or set "
        "`nvidia-smi -c DEFAULT`"
    ),
    "cudaErrorSystemNotReady": "start nvidia-fabricmanager, or wait until it is up",
    "cudaErrorSystemDriverMismatch": (
        "the driver was updated while it was loaded: restart the machine or the container"
    ),
    "cudaErrorCompatNotSupportedOnDevice": (
        "take CUDA's forward-compatibility libraries off LD_LIBRARY_PATH, or update the driver"
    ),
    "cudaErrorMpsConnectionFailed": "start nvidia-cuda-mps-control, or unset CUDA_MPS_PIPE_DIRECTORY",
}
"""Errors that are the machine's: the name, and what to do."""


def load_runtime() -> ModuleType:
    """Import cuda-python's module of the CUDA runtime; needs no driver.

    Raises:
        EnvironmentNotFit: cuda-python is not installed or does not load.
    """
    reasons = []
    for name in MODULES:
        found = _load(name)
        if not isinstance(found, str):
            return found
        reasons += [f"{name}: {found}"] if found else []
    why = f"does not load ({'; '.join(reasons)})" if reasons else "is not installed"
    msg = f"cuda-python {why}; install it: `pip install cuda-python`."
    raise EnvironmentNotFit(msg)


def _load(name: str) -> ModuleType | str:
    """Import a module, or say why it does not load; nothing if it is not installed."""
    try:
        return import_module(name)
    except ModuleNotFoundError:
        return ""
    except (ImportError, OSError, RuntimeError) as error:
        return " ".join(str(error).split())


class CudaCalls:
    """The CUDA runtime of this process.

    After an error that the context does not recover from (an illegal address, a failed launch),
    every further call fails at once with the first error's text: only a new process helps.

    Attributes:
        module: cuda-python's module, for its constants.
        is_capturing: Whether a stream of this thread is being recorded: the device must not be
            waited for then.
    """

    def __init__(self, module: Any) -> None:
        """Call functions of ``module``, which is what ``load_runtime`` returns."""
        self.module = module
        self._success = module.cudaError_t.cudaSuccess
        self._broken = ""
        self.is_capturing = False

    @property
    def is_broken(self) -> bool:
        """Whether the context is beyond repair."""
        return bool(self._broken)

    def __call__(self, doing: str, function: str, *arguments: Any) -> Any:
        """Call a function and return its results without the status.

        Args:
            doing: What this is for, e.g. ``allocating 4096 bytes for x``.
            function: Name of the function.
            arguments: Its arguments.

        Returns:
            Nothing, the one result, or a tuple of several.

        Raises:
            RunError: The call failed; names the CUDA error.
            EnvironmentNotFit: It failed for want of a driver or a device.
        """
        if self._broken:
            raise RunError(self._broken)
        try:
            status, *results = getattr(self.module, function)(*arguments)
        except (RuntimeError, KeyError, ValueError, TypeError) as error:
            # Drivers know errors that older bindings have no name for.
            msg = f"{doing} failed: {function}: {' '.join(str(error).split())}"
            raise RunError(msg) from error
        if status != self._success:
            raise self._failure(doing, status)
        if not results:
            return None
        return results[0] if len(results) == 1 else tuple(results)

    def require_alive(self) -> None:
        """Refuse to go on in a broken context.

        Raises:
            RunError: It is broken; the text is the first error's.
        """
        if self._broken:
            raise RunError(self._broken)

    def check(self, doing: str) -> None:
        """Wait for everything on the device, and raise what went wrong meanwhile.

        While a stream is being recorded it cannot be waited, and nothing is raised.

        Raises:
            RunError: Something did.
        """
        self.require_alive()
        if self.is_capturing:
            return
        self(doing, "cudaDeviceSynchronize")
        self(doing, "cudaGetLastError")

    def release(self, function: str, handle: Any) -> None:
        """Give something back; in a broken context there is nothing left to give back."""
        if not self._broken:
            self("cleaning up", function, handle)

    def _failure(self, doing: str, status: Any) -> SmartTunerError:
        """The exception for a status; finds out whether the context survived."""
        name = str(getattr(status, "name", status))
        if name == _OLD_DRIVER:
            return EnvironmentNotFit(self._old_driver())
        if name == _NO_DEVICE:
            return EnvironmentNotFit(_no_device())
        if name in _ENVIRONMENT:
            return EnvironmentNotFit(f"{doing} failed: {name}; {_ENVIRONMENT[name]}.")
        msg = f"{doing} failed: {name} ({self._words(status)})"
        if name == _OUT_OF_MEMORY:
            msg = f"GPU out of memory: {doing} failed: {name}{self._memory()}"
        # The first call gives the error back once more and forgets it, unless it is there to stay.
        self.module.cudaGetLastError()
        if self.is_capturing or name == _OUT_OF_MEMORY:
            return RunError(msg)
        after = self.module.cudaDeviceSynchronize()[0]
        if after != self._success:
            self._broken = f"{msg}; the CUDA context of this process is lost"
            return RunError(self._broken)
        return RunError(msg)

    def _words(self, status: Any) -> str:
        _, words = self.module.cudaGetErrorString(status)
        return words.decode() if isinstance(words, bytes) else str(words)

    def _memory(self) -> str:
        status, *results = self.module.cudaMemGetInfo()
        if status != self._success:
            return ""
        free, total = results
        return f"; {free} of {total} bytes are free"

    def _old_driver(self) -> str:
        _, driver = self.module.cudaDriverGetVersion()
        if not driver:
            return (
                "There is no NVIDIA driver: install one until `nvidia-smi` works; in a container, "
                "start it with `--gpus all`."
            )
        _, runtime = self.module.cudaRuntimeGetVersion()
        return (
            f"The NVIDIA driver supports CUDA {_version(driver)}, cuda-python is made for "
            f"{_version(runtime)}: update the driver, or install `cuda-python=={driver // 1000}.*`."
        )


def _no_device() -> str:
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return "No GPU is visible to CUDA: see `nvidia-smi -L`; in a container, use `--gpus all`."
    return (
        f"No GPU is visible to CUDA, and CUDA_VISIBLE_DEVICES is {visible!r}: unset it, or name a "
        "GPU of `nvidia-smi -L`."
    )


def _version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}" if number else ""
