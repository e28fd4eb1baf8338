import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from smart_tuner.errors import ModelError, UserInputError
from smart_tuner.study.proof.winner import read_manifest, shipped_gain, shipped_route
from smart_tuner.study.setup.plan import make_plan
from smart_tuner.study.setup.settings import make_settings
from tests.unit.study.pretend import Planted


@pytest.fixture
def winner(planted: Planted) -> Path:
    return planted.result.study / "winner"


def change(winner: Path, **values: Any) -> None:
    path = winner / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def test_a_sound_winner_is_read(winner: Path, planted: Planted) -> None:
    manifest = read_manifest(winner)
    assert set(manifest["files"]) == {path.name for path in winner.iterdir()} - {"manifest.json"}
    assert shipped_gain(manifest) == planted.result.route_gain


def test_a_study_without_a_winner_says_so(tmp_path: Path) -> None:
    with pytest.raises(UserInputError, match=r"No winner in .*: the study has none"):
        read_manifest(tmp_path / "winner")


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"files": 3}', '{"files": {}}', "\0"])
def test_a_damaged_manifest_is_one_line(winner: Path, text: str) -> None:
    (winner / "manifest.json").write_text(text)
    with pytest.raises(UserInputError, match=r"is damaged .*run the same `tune` command again"):
        read_manifest(winner)


def test_a_changed_engine_is_noticed(winner: Path) -> None:
    engine = winner / "engine.json"
    engine.write_bytes(engine.read_bytes() + b" ")
    with pytest.raises(UserInputError, match=r"engine.json is missing or was changed"):
        read_manifest(winner)


def test_a_missing_engine_is_noticed(winner: Path) -> None:
    (winner / "engine.json").unlink()
    with pytest.raises(UserInputError, match=r"engine.json is missing or was changed"):
        read_manifest(winner)


@pytest.mark.parametrize("name", ["../../study.toml", "/etc/hostname", "a/../engine.json", ".."])
def test_files_outside_of_the_folder_are_never_looked_at(winner: Path, name: str) -> None:
    manifest = json.loads((winner / "manifest.json").read_text())
    change(winner, files={**manifest["files"], name: "0" * 64})
    with pytest.raises(UserInputError, match="no plain file name"):
        read_manifest(winner)


def test_an_engine_that_the_digests_leave_out_is_not_believed(winner: Path) -> None:
    change(winner, files={})
    with pytest.raises(UserInputError, match="is missing or was changed"):
        read_manifest(winner)


@pytest.mark.parametrize(
    "gain", [None, {}, {"route_gain": None}, {"route_gain": {"value": "x"}}, {"route_gain": 3}]
)
def test_a_manifest_without_a_gain_is_one_line(winner: Path, gain: object) -> None:
    change(winner, gain=gain)
    with pytest.raises(UserInputError, match="ship anew with `tune`"):
        shipped_gain(read_manifest(winner))


class TestRoute:
    def plan(self, model: Path) -> Any:
        return make_plan(make_settings({"model": model, "backend": "replay"}))

    def test_it_is_checked_against_the_knobs_of_today(
        self, winner: Path, planted: Planted
    ) -> None:
        plan = self.plan(planted.model)
        assert str(shipped_route(read_manifest(winner), plan)) == "-fast=on"
        change(winner, route="-gone=on")
        with pytest.raises(UserInputError, match="gone"):
            shipped_route(read_manifest(winner), plan)
        change(winner, route="-fast=warp")
        with pytest.raises(UserInputError, match="warp"):
            shipped_route(read_manifest(winner), plan)

    def test_another_model_is_refused(self, winner: Path, planted: Planted) -> None:
        change(winner, model={"sha256": "0" * 64})
        with pytest.raises(UserInputError, match="tuned for another model"):
            shipped_route(read_manifest(winner), self.plan(planted.model))


def test_a_model_that_is_gone_is_named(winner: Path, planted: Planted) -> None:
    shutil.move(planted.model, planted.model.with_name("moved.onnx"))
    with pytest.raises((ModelError, UserInputError), match=r"model\.onnx"):
        planted.again()
