from pathlib import Path

import pytest

from smart_tuner.engine.backend import installed_backends, load_backend
from smart_tuner.errors import BackendNotFound

MODULE = """
class Good:
    name, api_version = "good", 1
class Old:
    name, api_version = "old", 0
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"backends_of_{tmp_path.name}".replace("-", "_")
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    return name


def test_a_class_of_a_module_is_a_backend(module: str) -> None:
    assert load_backend(f"{module}:Good").name == "good"


def test_installed_backends_are_listed() -> None:
    assert "onnxruntime" in installed_backends()


@pytest.mark.parametrize("name", ["nothing", "", "no.such.module:Class", ":Class", "module_x:"])
def test_a_missing_backend_is_named(name: str) -> None:
    with pytest.raises(BackendNotFound, match="No backend"):
        load_backend(name)


def test_a_missing_class_and_another_version_are_named(module: str) -> None:
    with pytest.raises(BackendNotFound, match="has no 'Missing'"):
        load_backend(f"{module}:Missing")
    with pytest.raises(BackendNotFound, match="speaks API 0"):
        load_backend(f"{module}:Old")
