"""The shipped contract on the real thing; engines of the default route are built once."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from smart_tuner.engine.build import BuildRequest
from smart_tuner.model.load import load_model
from smart_tuner.testing.backend_contract import BackendContract
from tests.gpu.comparing import assert_close
from tests.gpu.gpu_models import NETWORKS

if TYPE_CHECKING:
    from pathlib import Path

    from smart_tuner.backends.tensorrt.backend import TensorRtBackend
    from smart_tuner.backends.tensorrt.runner import TensorRtRunner
    from smart_tuner.engine.backend import Backend, Tensors
    from smart_tuner.engine.build import Engine
    from smart_tuner.engine.platform import Platform
    from smart_tuner.knobs.database import KnobDatabase
    from smart_tuner.model.spec import ModelSpec

pytestmark = pytest.mark.gpu


class OnBase:
    """A backend whose every request stands on one base; the requests themselves name none."""

    api_version = 1

    def __init__(self, backend: TensorRtBackend, base: dict[str, str]) -> None:
        self.name = backend.name
        self._backend, self._base = backend, base

    def platform(self) -> Platform:
        return self._backend.platform()

    def knobs(self, model: ModelSpec | None = None) -> KnobDatabase:
        return self._backend.knobs(model)

    def build(self, request: BuildRequest, workdir: Path) -> Engine:
        on_base = replace(request, base={**self._base, **request.base})
        return replace(self._backend.build(on_base, workdir), request=request)

    def load(self, engine: Engine) -> TensorRtRunner:
        return self._backend.load(engine)


@pytest.fixture(scope="module")
def built(
    installed: TensorRtBackend,
    base: dict[str, str],
    models: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Engine:
    shapes = ({"x": NETWORKS["mlp"].inputs[0]["x"].shape},)
    request = BuildRequest(models / "mlp.onnx", shapes=shapes)
    return OnBase(installed, base).build(request, tmp_path_factory.mktemp("built"))


class TestOnTheGpu(BackendContract):
    @pytest.fixture
    def backend(self, installed: TensorRtBackend, base: dict[str, str]) -> Backend:
        return OnBase(installed, base)

    @pytest.fixture
    def model(self, models: Path) -> ModelSpec:
        return load_model(models / "mlp.onnx")

    @pytest.fixture
    def inputs(self) -> Tensors:
        return dict(NETWORKS["mlp"].inputs[0])

    @pytest.fixture
    def engine(self, built: Engine, tmp_path: Path) -> Engine:
        """A copy, since tests may damage it."""
        folder = tmp_path / "default"
        shutil.copytree(built.path.parent, folder)
        return replace(built, path=folder / built.path.name)

    def test_building_twice_gives_one_fingerprint(
        self, backend: Backend, engine: Engine, request_for: BuildRequest, tmp_path: Path
    ) -> None:
        """Real compilers time kernels and choose by luck; what both engines compute agrees."""
        (tmp_path / "again").mkdir()
        again = backend.build(request_for, tmp_path / "again")
        inputs = NETWORKS["mlp"].inputs[0]
        with backend.load(engine) as first, backend.load(again) as second:
            assert_close(first.infer(inputs), second.infer(inputs))
