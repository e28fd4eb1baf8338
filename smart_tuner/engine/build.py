"""A build request and the engine that it gives."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from smart_tuner.route.build_route import BuildRoute

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

MODEL_FILE = "model.onnx"
"""Name of a rewritten model beside its engine."""

LOADER_FILE = "load_winner.py"
"""Name of the file that ``Engine.loader`` is written to."""


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """Everything that a child process needs to build one engine.

    Attributes:
        model: Absolute path of the model file. The path, never its bytes, goes to libraries.
        route: Values on top of the base.
        base: The user's production configuration, knob or pass-through setting to value.
        shapes: Concrete shapes of every workload point, by input name; the first one is timed
            first.
        reference: Build with every optimization off, to make reference outputs; the route is
            empty then.
        timing_cache: Timings of kernels that an earlier build left, to start from; it is read and
            never written. None to start from nothing.
        precision: Folder that the model is rewritten from where base or route lower regions of
            it; a backend never sees those knobs, its ``model`` is what they gave.
    """

    model: Path
    route: BuildRoute = field(default_factory=BuildRoute)
    base: Mapping[str, str] = field(default_factory=dict)
    shapes: tuple[Mapping[str, tuple[int, ...]], ...] = ()
    reference: bool = False
    timing_cache: Path | None = None
    precision: Path | None = None


@dataclass(frozen=True, slots=True)
class Engine:
    """A built engine on disk. The file, not the route, is what gets shipped.

    Attributes:
        path: The engine file: a TensorRT plan, or the session settings of ONNX Runtime as JSON.
        sha256: Digest of the file.
        fingerprint: Digest of the compiled artefact plus every effective setting: equal
            fingerprints mean that two routes give the same engine.
        request: What it was built from; a timing cache that the compiler refused is left out.
        build_seconds: Wall-clock seconds of the build.
        notes: What the compiler said that a user should hear.
        loader: Python source of a module whose ``load`` opens this engine without smart_tuner;
            empty if the backend has none.
        size_bytes: Size of the compiled artefact; None where it is not known.
        structure: Digest of what the compiler says it made of the network, layer by layer; files
            that differ may share it. Empty if it says nothing.
        timing_cache: File beside ``path`` with the kernel timings that this build ended with;
            None if the backend keeps none.
        companions: Files beside ``path`` that go with it: a model whose precision was lowered,
            with its data.
    """

    path: Path
    sha256: str
    fingerprint: str
    request: BuildRequest
    build_seconds: float
    notes: tuple[str, ...] = ()
    loader: str = ""
    size_bytes: int | None = None
    structure: str = ""
    timing_cache: Path | None = None
    companions: tuple[Path, ...] = ()
