"""A winner that is looked at on another machine than the one that it was tuned on."""

import dataclasses
import json
from typing import Any

import pytest

from smart_tuner.engine.platform import Platform
from smart_tuner.errors import UserInputError
from smart_tuner.study.progress.events import silent
from smart_tuner.study.proof.winner import platform_changes
from smart_tuner.study.setup.identity import differences, platform_identity
from smart_tuner.study.verify import verify
from tests.unit.study.pretend import Planted

HERE = Platform("H200", "570.1", "tensorrt 11.1", "2.19", {"uuid": "GPU-1", "cuda": "13"})


def manifest_of(platform: Platform) -> dict[str, Any]:
    return {"platform": dataclasses.asdict(platform)}


def test_a_file_is_of_one_gpu_model_and_one_version_figures_are_of_one_driver() -> None:
    assert platform_changes(manifest_of(HERE), HERE).sentences == ()
    twin = dataclasses.replace(HERE, details={"uuid": "GPU-2", "cuda": "13"})
    assert not platform_changes(manifest_of(HERE), twin).forbid_the_file
    newer = platform_changes(manifest_of(HERE), dataclasses.replace(HERE, driver="580.2"))
    assert not newer.forbid_the_file
    assert newer.sentences == (
        "The winner's driver was 570.1, here it is 580.2; figures may differ.",
    )
    for other, name in (
        (dataclasses.replace(HERE, device="A100"), "A100"),
        (dataclasses.replace(HERE, backend_version="tensorrt 11.4"), "tensorrt 11.4"),
    ):
        changes = platform_changes(manifest_of(HERE), other)
        assert changes.forbid_the_file
        assert name in changes.sentences[0]


def test_a_study_goes_on_on_another_gpu_of_the_same_model_only() -> None:
    twin = dataclasses.replace(HERE, details={"uuid": "GPU-2", "cuda": "13"})
    assert differences(platform_identity(HERE), platform_identity(twin)) == ()
    other = dataclasses.replace(HERE, device="A100")
    assert differences(platform_identity(HERE), platform_identity(other))


def test_the_file_of_another_gpu_is_not_loaded(planted: Planted) -> None:
    path = planted.result.study / "winner" / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["platform"]["device"] = "another GPU"
    path.write_text(json.dumps(manifest))
    with pytest.raises(UserInputError, match=r"another GPU, here it is simulated.*--rebuild"):
        verify(planted.result.study, silent)
