"""The settings that the project ships are valid."""

from __future__ import annotations

from pathlib import Path

import pytest

from smart_tuner.model.toml import read_toml
from smart_tuner.study.setup.base import read_base
from smart_tuner.study.setup.settings import StudySettings, make_settings

CONFIGS = Path(__file__).parents[3] / "configs"
BASES = sorted(CONFIGS.glob("base-*.toml"))
SETTINGS = sorted({*CONFIGS.glob("*.toml")} - {*BASES})


@pytest.mark.parametrize("path", SETTINGS, ids=lambda path: path.stem)
def test_shipped_settings_are_valid(path: Path) -> None:
    values = read_toml(path, "configuration")
    settings = make_settings({"model": "m.onnx", **values})
    assert isinstance(settings, StudySettings)
    assert values


@pytest.mark.parametrize("path", BASES, ids=lambda path: path.stem)
def test_shipped_bases_are_text_by_setting(path: Path) -> None:
    base = read_base(path)
    assert base
    assert all(isinstance(value, str) for value in base.values())
