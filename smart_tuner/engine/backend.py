"""What a backend must offer, and how one is found."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Protocol, cast

from smart_tuner.errors import BackendNotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    import numpy as np
    import numpy.typing as npt
    from typing_extensions import Self

    from smart_tuner.engine.build import BuildRequest, Engine
    from smart_tuner.engine.platform import Platform
    from smart_tuner.knobs.database import KnobDatabase
    from smart_tuner.model.spec import ModelSpec

    Tensors = Mapping[str, npt.NDArray[np.generic]]

ENTRY_POINT_GROUP = "smart_tuner.backends"
API_VERSION = 1


class EngineRunner(Protocol):
    """A loaded engine; a context manager, since it owns threads or device memory.

    A runner may also have ``memory_bytes``, the device memory that it holds once ``infer`` ran;
    without it the limit on device memory cannot be asked for. And ``decided``, settings of the
    base that it chose where the base left the choice open: what the baseline's runner decides
    joins the base of every later build of a study. One that measures a throughput may have
    ``p99_ms``, how long 99 % of the inferences of its last block took at most.
    """

    def __enter__(self) -> Self: ...
    def __exit__(self, *exc: object) -> None: ...

    def infer(self, inputs: Tensors) -> Tensors:
        """Poison the output buffers, run once and return copies of all outputs.

        Args:
            inputs: Every model input by name; types as ``TensorSpec.dtype`` says.

        Raises:
            RunError: The engine did not run.
        """
        ...

    def time_block(self, iterations: int) -> tuple[float, ...]:
        """Run ``iterations`` times on the inputs of the last ``infer`` and return milliseconds.

        One figure a run, or fewer where runs are too short to be timed one by one: then each
        figure is the mean of consecutive runs, at least one in all, and the last may stand for
        runs beyond ``iterations``.

        End-to-end: host inputs to host outputs. The output buffers are poisoned before the block.

        Raises:
            RunError: The engine did not run, or ``infer`` was never called.
        """
        ...

    def outputs(self) -> Tensors:
        """Return copies of what the last run, timed or not, left in the output buffers."""
        ...


class Backend(Protocol):
    """A compiler with knobs: ONNX Runtime, TensorRT, or recorded trials.

    ``platform``, ``build`` and ``load`` run in child processes; ``knobs`` may start one itself.

    A backend may also have ``reference_backend``, the name of the backend that makes reference
    outputs where none are given; without it, it makes them itself. And a method
    ``timing_cache_keys(path)``, the keys of a timing cache as texts, None if it has none to tell.
    And a method ``precisions(base)``, the ``PrecisionSupport`` that says to which element types
    regions of a graph may be lowered; without it they cannot be.
    And ``files_read_again(model)``, the files that an engine opens again whenever it is loaded, the
    model first: such an engine is the model with settings, and is kept together with them.
    """

    name: str
    api_version: int

    def platform(self) -> Platform:
        """Return what results depend on besides model and route.

        Raises:
            EnvironmentNotFit: The runtime is missing or cannot work here; says what to install.
        """
        ...

    def knobs(self, model: ModelSpec | None = None) -> KnobDatabase:
        """Return every knob of this backend version; with a model, mark those idle on it.

        Raises:
            ModelError: The runtime refuses the model.
        """
        ...

    def build(self, request: BuildRequest, workdir: Path) -> Engine:
        """Build one engine into ``workdir``; runs in a child process.

        Raises:
            BuildError: The engine did not build.
            NotApplied: The compiler did not take the route.
        """
        ...

    def load(self, engine: Engine) -> EngineRunner:
        """Load an engine for inference.

        Raises:
            RunError: The engine did not load.
        """
        ...


def installed_backends() -> tuple[str, ...]:
    """Names of the installed backends, sorted."""
    return tuple(sorted(entry.name for entry in entry_points(group=ENTRY_POINT_GROUP)))


def load_backend(name: str) -> Backend:
    """Find a backend.

    Args:
        name: Name of an installed backend, or ``module:Class`` for one that is not installed.

    Raises:
        BackendNotFound: There is no such backend, or it speaks another version.
    """
    factory = _from_module(name) if ":" in name else _from_entry_point(name)
    backend = factory()
    if backend.api_version != API_VERSION:
        msg = f"Backend {name!r} speaks API {backend.api_version}, this version speaks {API_VERSION}."
        raise BackendNotFound(msg)
    return backend


def files_read_again(backend: str, model: Path) -> tuple[Path, ...]:
    """The files beside an engine that loading it opens; none where engines hold everything.

    Args:
        backend: Name of a backend.
        model: The model file.

    Raises:
        BackendNotFound: There is no such backend.
        ModelError: A data file of the model is missing.
    """
    ask = getattr(load_backend(backend), "files_read_again", None)
    return () if ask is None else tuple(ask(model))


def _from_entry_point(name: str) -> Callable[[], Backend]:
    found = {entry.name: entry for entry in entry_points(group=ENTRY_POINT_GROUP)}
    if name not in found:
        msg = f"No backend {name!r}; installed: {', '.join(sorted(found))}."
        raise BackendNotFound(msg)
    try:
        return cast("Callable[[], Backend]", found[name].load())
    except (ImportError, AttributeError) as error:
        msg = f"Backend {name!r} cannot be imported ({error}): install what it needs again."
        raise BackendNotFound(msg) from error


def _from_module(name: str) -> Callable[[], Backend]:
    module, _, attribute = name.partition(":")
    try:
        return cast("Callable[[], Backend]", getattr(import_module(module), attribute))
    except (ImportError, ValueError) as error:
        msg = f"No backend {name!r}: module {module!r} cannot be imported ({error})."
        raise BackendNotFound(msg) from error
    except AttributeError as error:
        msg = f"No backend {name!r}: module {module!r} has no {attribute!r}."
        raise BackendNotFound(msg) from error
