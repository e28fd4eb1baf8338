"""The backends of TensorRT and of TensorRT-RTX, one class each over the same code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smart_tuner.backends.tensorrt.sdk import TENSORRT, TENSORRT_RTX, load_sdk

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from smart_tuner.backends.tensorrt.runner import TensorRtRunner
    from smart_tuner.backends.tensorrt.sdk import Sdk
    from smart_tuner.engine.build import BuildRequest, Engine
    from smart_tuner.engine.platform import Platform
    from smart_tuner.knobs.database import KnobDatabase
    from smart_tuner.model.spec import ModelSpec
    from smart_tuner.precision.support import PrecisionSupport


class TensorRtBackend:
    """Tunes TensorRT engines; needs an NVIDIA GPU to run them.

    What may stand in the base beside knobs is listed in ``settings``.

    Attributes:
        reference_backend: The backend that makes reference outputs where none are given.
        modules: Python modules of the SDK, tried in this order.
    """

    name = "tensorrt"
    api_version = 1
    reference_backend = "onnxruntime"
    modules: Sequence[str] = TENSORRT

    def __init__(self, sdk: Callable[[], Sdk] | None = None) -> None:
        """Find the SDK on first use.

        Args:
            sdk: Gives the SDK; by default the installed one is imported.
        """
        self._find_sdk = sdk or self._load_sdk

    def _load_sdk(self) -> Sdk:
        return load_sdk(self.modules)

    def platform(self) -> Platform:
        """Return GPU, driver and versions.

        Raises:
            EnvironmentNotFit: The SDK is missing, or there is no GPU to run engines on.
        """
        from smart_tuner.backends.tensorrt.platform import find_platform

        return find_platform(self._find_sdk())

    def knobs(self, model: ModelSpec | None = None) -> KnobDatabase:
        """Return every knob of the installed version; needs no GPU.

        Raises:
            ModelError: The compiler refuses the model.
            EnvironmentNotFit: The SDK is missing or does not load.
        """
        from smart_tuner.backends.tensorrt.knobs import knob_database

        return knob_database(self._find_sdk(), model)

    def precisions(self, base: Mapping[str, str]) -> PrecisionSupport:
        """Return the element types that regions may be lowered to on top of a base.

        Raises:
            EnvironmentNotFit: The SDK is missing or does not load.
        """
        from smart_tuner.backends.tensorrt.precision import precision_support

        return precision_support(self._find_sdk(), base)

    def build(self, request: BuildRequest, workdir: Path) -> Engine:
        """Build one engine: ``engine.plan`` with ``engine.json`` and a timing cache beside it.

        Raises:
            BuildError: The compiler refuses the model or gives up.
            NotApplied: The compiler did not take a knob.
            UserInputError: Base or route name something unknown, or a profile is wrong.
            EnvironmentNotFit: The SDK or the GPU that it builds for is missing.
        """
        from smart_tuner.backends.tensorrt.build import build_engine

        return build_engine(self._find_sdk(), request, workdir)

    def timing_cache_keys(self, path: Path) -> frozenset[str] | None:
        """Return the keys of a timing cache; None where the version cannot list them.

        Raises:
            RunError: The file is no timing cache of this version.
            EnvironmentNotFit: The SDK is missing or does not work here.
        """
        from smart_tuner.backends.tensorrt.timing_cache import cache_keys

        return cache_keys(self._find_sdk(), path)

    def load(self, engine: Engine) -> TensorRtRunner:
        """Load an engine for inference.

        Raises:
            RunError: The engine is not the one that was built, is of another GPU or version, or
                does not load.
        """
        from smart_tuner.backends.tensorrt.runner import TensorRtRunner

        return TensorRtRunner(self._find_sdk(), engine)


class TensorRtRtxBackend(TensorRtBackend):
    """Tunes TensorRT-RTX engines; builds for other GPUs too, even where there is none."""

    name = "tensorrt-rtx"
    modules: Sequence[str] = TENSORRT_RTX
