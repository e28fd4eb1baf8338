from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from smart_tuner.engine.backend import Backend, load_backend
from smart_tuner.model.load import load_model
from smart_tuner.simulate.generators import make_compiler
from smart_tuner.simulate.model_file import write_simulated_model
from smart_tuner.testing.backend_contract import BackendContract

if TYPE_CHECKING:
    from pathlib import Path

    from smart_tuner.engine.backend import Tensors
    from smart_tuner.model.spec import ModelSpec


class SmallModel(BackendContract):
    @pytest.fixture
    def model(self, tmp_path: Path) -> ModelSpec:
        compiler = make_compiler("sparse", seed=3, knob_count=30)
        return load_model(write_simulated_model(tmp_path, compiler))

    @pytest.fixture
    def inputs(self) -> Tensors:
        return {"x": np.linspace(-1, 1, 16, dtype=np.float32).reshape(1, 16)}


class TestReplay(SmallModel):
    @pytest.fixture
    def backend(self) -> Backend:
        return load_backend("replay")


class TestOnnxRuntime(SmallModel):
    @pytest.fixture
    def backend(self) -> Backend:
        return load_backend("onnxruntime")
