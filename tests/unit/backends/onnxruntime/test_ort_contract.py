from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from smart_tuner.backends.onnxruntime import OnnxRuntimeBackend
from smart_tuner.model.load import load_model
from smart_tuner.testing.backend_contract import BackendContract

if TYPE_CHECKING:
    from pathlib import Path

    from smart_tuner.engine.backend import Backend, Tensors
    from smart_tuner.model.spec import ModelSpec


class TestOnnxRuntimeBackend(BackendContract):
    @pytest.fixture
    def backend(self) -> Backend:
        return OnnxRuntimeBackend()

    @pytest.fixture
    def model(self, convolution: Path) -> ModelSpec:
        return load_model(convolution)

    @pytest.fixture
    def inputs(self) -> Tensors:
        return {"x": np.ones((1, 16, 8, 8), np.float32)}
