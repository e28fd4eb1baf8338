"""The ONNX Runtime backend."""

from __future__ import annotations

import platform as host
from typing import TYPE_CHECKING

import numpy as np

from smart_tuner.backends.onnxruntime.build import build_engine, model_files, read_engine
from smart_tuner.backends.onnxruntime.knobs import knob_database
from smart_tuner.backends.onnxruntime.precision import precision_support
from smart_tuner.backends.onnxruntime.runner import OnnxRuntimeRunner
from smart_tuner.backends.onnxruntime.runtime import import_runtime, runtime_version
from smart_tuner.devices.cpu import cpu_quota, instruction_sets, processor_name
from smart_tuner.engine.platform import Platform
from smart_tuner.errors import UserInputError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from smart_tuner.engine.build import BuildRequest, Engine
    from smart_tuner.knobs.database import KnobDatabase
    from smart_tuner.model.spec import ModelSpec
    from smart_tuner.precision.support import PrecisionSupport


class OnnxRuntimeBackend:
    """Tunes sessions of ONNX Runtime on the processor.

    The base may hold, beside knobs: ``custom_op_library`` (path of a library with custom
    operators), and ``free_dimension_override:NAME`` (size of a symbolic dimension).

    Attributes:
        process_wide_knobs: Knobs that the first session of a process decides for all later ones,
            so that baseline and candidate must not share a process.
    """

    name = "onnxruntime"
    api_version = 1
    process_wide_knobs = frozenset({"session:set_denormal_as_zero"})

    def platform(self) -> Platform:
        """Return processor, system and versions.

        Raises:
            EnvironmentNotFit: onnxruntime is missing or does not load.
        """
        providers = import_runtime().get_available_providers()
        return Platform(
            device=processor_name(),
            driver=f"{host.system()} {host.release()}",
            backend_version=runtime_version(),
            tuner_version=runtime_version(),
            details={
                "cpu_quota": str(cpu_quota()),
                "instruction_sets": " ".join(instruction_sets()),
                "numpy": np.__version__,
                "providers": " ".join(providers),
            },
        )

    def knobs(self, model: ModelSpec | None = None) -> KnobDatabase:
        """Return all knobs; with a model, those that cannot act on it are marked.

        Raises:
            ModelError: The runtime refuses the model.
            EnvironmentNotFit: onnxruntime is missing or does not load.
        """
        return knob_database(model)

    def precisions(self, base: Mapping[str, str]) -> PrecisionSupport:
        """Return the element types that regions may be lowered to with a base's provider."""
        return precision_support(base)

    def build(self, request: BuildRequest, workdir: Path) -> Engine:
        """Build one engine: ``engine.json`` with the effective session settings.

        Raises:
            BuildError: The runtime refuses model or settings.
            NotApplied: A setting did not take.
            UserInputError: Base or route name something unknown.
        """
        if request.base.get("provider", "cpu") != "cpu":
            msg = (
                f"provider = {request.base['provider']}: this backend runs on the processor; give "
                "--backend onnxruntime-cuda for a GPU."
            )
            raise UserInputError(msg)
        return build_engine(request, workdir)

    def files_read_again(self, model: Path) -> tuple[Path, ...]:
        """Return the model and its data files: a session opens them each time.

        Raises:
            ModelError: A data file is missing.
        """
        return model_files(model)

    def load(self, engine: Engine) -> OnnxRuntimeRunner:
        """Open a session with the settings of an engine.

        Raises:
            RunError: The engine file is not the one that was built, or does not load.
        """
        return OnnxRuntimeRunner(*read_engine(engine))
