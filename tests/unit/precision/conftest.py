from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from smart_tuner.backends.onnxruntime.precision import precision_support
from smart_tuner.model.load import load_model
from smart_tuner.model.tensors import save_tensors
from smart_tuner.precision.job import Job, prepare
from smart_tuner.precision.regions import regions
from tests.unit.precision.networks import inputs_of, mixed_network, saved

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from smart_tuner.precision.regions import Region

    Prepare = Callable[..., tuple[Path, tuple[Region, ...]]]

SUPPORT = precision_support({})


@pytest.fixture(scope="session")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(mixed_network(), tmp_path_factory.mktemp("network") / "mixed.onnx")


@pytest.fixture(scope="session")
def prepared(
    network: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, tuple[Region, ...]]:
    """The mixed network, each layer a region, ready for every value that the processor takes."""
    folder = tmp_path_factory.mktemp("prepared")
    return prepare_layers(network, folder), regions(network, ["per-layer"])


def prepare_layers(model: Path, folder: Path, calibration: str = "minmax") -> Path:
    files = []
    for seed in range(3):
        save_tensors(folder / f"{seed}.inputs", inputs_of(seed))
        files.append(folder / f"{seed}.inputs")
    spec = load_model(model)
    job = Job(
        model=model,
        sha256=spec.sha256,
        size_bytes=spec.size_bytes,
        regions=regions(model, ["per-layer"]),
        values=frozenset(SUPPORT.values),
        scheme=SUPPORT.scheme,
        calibration=calibration,
        inputs=tuple(files),
    )
    prepare(folder / "precision", job)
    return folder / "precision"
