"""A GPU with TensorRT: ``pytest tests/gpu -m gpu``, with ``--backend tensorrt-rtx`` for RTX."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import pytest

from smart_tuner.backends.tensorrt.builder_settings import LIBRARIES
from smart_tuner.engine.backend import load_backend
from smart_tuner.engine.build import BuildRequest, Engine
from tests.gpu.comparing import run_on_processor
from tests.gpu.gpu_models import NETWORKS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from smart_tuner.backends.tensorrt.backend import TensorRtBackend
    from smart_tuner.backends.tensorrt.runner import TensorRtRunner

    Open = Callable[..., TensorRtRunner]
    Build = Callable[..., Engine]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--backend", default="tensorrt", help="backend to run on the GPU")


@pytest.fixture(scope="session")
def installed(request: pytest.FixtureRequest) -> TensorRtBackend:
    found: Any = load_backend(request.config.getoption("--backend", default="tensorrt"))
    return cast("TensorRtBackend", found)


@pytest.fixture(scope="session")
def backend(installed: TensorRtBackend) -> TensorRtBackend:
    return installed


@pytest.fixture(scope="session")
def base(installed: TensorRtBackend) -> dict[str, str]:
    """Quick builds, exact products, and no library that is not there."""
    names = {knob.name for knob in installed.knobs()}
    wanted = {f"tactic_source:{name.lower()}": "off" for name in LIBRARIES}
    wanted |= {"builder:optimization_level": "0", "flag:tf32": "off"}
    return {name: value for name, value in wanted.items() if name in names}


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    for name, network in NETWORKS.items():
        network.write(folder / f"{name}.onnx")
    return folder


@pytest.fixture(scope="session")
def build(
    installed: TensorRtBackend,
    base: dict[str, str],
    models: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Build:
    """Build a network, once for each set of settings that acts on the build."""
    built: dict[tuple[str, frozenset[tuple[str, str]]], Engine] = {}

    def make(name: str, **settings: str) -> Engine:
        key = (name, frozenset(settings.items()))
        if key not in built:
            shapes = tuple(
                {tensor: array.shape for tensor, array in inputs.items()}
                for inputs in NETWORKS[name].inputs
            )
            distinct = tuple({tuple(each.items()): each for each in shapes}.values())
            request = BuildRequest(
                models / f"{name}.onnx", base={**base, **settings}, shapes=distinct
            )
            built[key] = installed.build(request, tmp_path_factory.mktemp(name))
        return built[key]

    return make


@pytest.fixture(scope="session")
def open_engine(installed: TensorRtBackend, build: Build) -> Open:
    """Load a network with settings that act on the run."""

    def load(name: str, **settings: str) -> TensorRtRunner:
        engine = build(name)
        request = replace(engine.request, base={**engine.request.base, **settings})
        return installed.load(replace(engine, request=request))

    return load


@pytest.fixture(scope="session")
def expected(models: Path) -> Callable[[str, int], dict[str, Any]]:
    """Outputs of ONNX Runtime on the processor."""

    def run(name: str, index: int = 0) -> dict[str, Any]:
        return run_on_processor(models / f"{name}.onnx", NETWORKS[name].inputs[index])

    return run
