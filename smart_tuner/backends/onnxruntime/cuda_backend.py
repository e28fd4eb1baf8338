"""ONNX Runtime on an NVIDIA GPU: the same runtime with its CUDA provider in front."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from smart_tuner.backends.onnxruntime.backend import OnnxRuntimeBackend
from smart_tuner.backends.onnxruntime.build import build_engine, read_engine
from smart_tuner.backends.onnxruntime.device_runner import DeviceRunner
from smart_tuner.backends.onnxruntime.knobs import knob_database
from smart_tuner.backends.onnxruntime.precision import precision_support
from smart_tuner.backends.onnxruntime.runner import OnnxRuntimeRunner
from smart_tuner.backends.onnxruntime.runtime import import_runtime, runtime_version
from smart_tuner.backends.onnxruntime.session import need_cuda
from smart_tuner.devices.cuda import visible_devices
from smart_tuner.devices.gpu import read_gpu
from smart_tuner.engine.platform import Platform

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from smart_tuner.devices.cuda import CudaDevice
    from smart_tuner.engine.build import BuildRequest, Engine
    from smart_tuner.knobs.database import KnobDatabase
    from smart_tuner.model.spec import ModelSpec
    from smart_tuner.precision.support import PrecisionSupport


class OnnxRuntimeCudaBackend(OnnxRuntimeBackend):
    """Tunes sessions of ONNX Runtime on the first GPU that CUDA shows.

    The base may hold, beside knobs, what that of ``onnxruntime`` may, and ``io``: ``host`` times
    the copies of inputs and outputs with each run, ``device`` leaves them out.

    Attributes:
        reference_backend: Reference outputs come from the processor. Where that backend cannot
            make them, as when only the base names a library of operators, this one does, on the
            processor as well.
    """

    name = "onnxruntime-cuda"
    reference_backend = "onnxruntime"

    def platform(self) -> Platform:
        """Return GPU, driver and versions.

        Raises:
            EnvironmentNotFit: onnxruntime-gpu or cuda-python is missing, or there is no GPU.
        """
        device = _gpu()
        state = read_gpu(device.bus_id)
        return Platform(
            device=device.name,
            driver=f"NVIDIA {state.driver or 'driver of unknown version'}",
            backend_version=runtime_version(),
            tuner_version=runtime_version(),
            details={
                "compute_capability": device.compute_capability,
                "cuda_driver": state.cuda_version or "unknown",
                "memory_bytes": str(device.memory_bytes),
                "numpy": np.__version__,
                "uuid": device.uuid,
            },
        )

    def knobs(self, model: ModelSpec | None = None) -> KnobDatabase:
        """Return all knobs; with a model, those that cannot act on it are marked.

        Raises:
            ModelError: The runtime refuses the model.
            EnvironmentNotFit: onnxruntime-gpu or cuda-python is missing, or there is no GPU.
        """
        _gpu()
        return knob_database(model, "cuda")

    def precisions(self, base: Mapping[str, str]) -> PrecisionSupport:
        """Return which element types the CUDA provider takes."""
        return precision_support(_on_cuda(base))

    def build(self, request: BuildRequest, workdir: Path) -> Engine:
        """Build one engine: ``engine.json`` with the effective session settings.

        Raises:
            BuildError: The runtime refuses model or settings.
            NotApplied: A setting did not take.
            UserInputError: Base or route name something unknown.
            EnvironmentNotFit: The CUDA provider does not start.
        """
        on_cuda = dataclasses.replace(request, base=_on_cuda(request.base))
        engine = build_engine(on_cuda, workdir)
        return dataclasses.replace(engine, request=request)

    def load(self, engine: Engine) -> OnnxRuntimeRunner:
        """Open a session with the settings of an engine.

        Raises:
            RunError: The engine file is not the one that was built, or does not load.
        """
        model, settings = read_engine(engine)
        # References are made on the processor.
        on_device = settings.provider == "cuda"
        return (DeviceRunner if on_device else OnnxRuntimeRunner)(model, settings)


def _on_cuda(base: Mapping[str, str]) -> dict[str, str]:
    return {**base, "provider": "cuda"}


def _gpu() -> CudaDevice:
    """The GPU that sessions run on."""
    need_cuda(import_runtime())
    return visible_devices()[0]
