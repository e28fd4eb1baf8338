from pathlib import Path
from typing import Any

import pytest

from smart_tuner.errors import EnvironmentNotFit, UserInputError
from smart_tuner.simulate.model_file import write_simulated_model
from smart_tuner.study.apply import apply_route
from smart_tuner.study.progress.events import Note
from smart_tuner.study.setup.settings import StudySettings, make_settings
from smart_tuner.trial.trial import TrialOutcome
from tests.unit.study.pretend import Recorder, planted_compiler


@pytest.fixture
def settings(tmp_path: Path) -> StudySettings:
    model = write_simulated_model(tmp_path, planted_compiler())
    chosen: dict[str, Any] = {"model": model, "backend": "replay", "metric": "linf"}
    return make_settings(chosen)


def test_one_route_is_built_checked_measured_and_copied_out(
    settings: StudySettings, tmp_path: Path
) -> None:
    listener = Recorder()
    trial = apply_route(settings, "-fast=on", listener, out=tmp_path / "new" / "out")
    assert trial.outcome is TrialOutcome.FEASIBLE
    assert trial.comparisons[0].gain == pytest.approx(1.22, rel=0.01)
    assert (tmp_path / "new" / "out" / "engine.json").is_file()
    assert any("synthetic" in note.text for note in listener.of(Note))
    assert not settings.folder.exists()


def test_a_route_that_fails_is_an_outcome_and_leaves_nothing(
    settings: StudySettings, tmp_path: Path
) -> None:
    trial = apply_route(settings, "-crash=on", Recorder(), out=tmp_path / "out")
    assert trial.outcome is TrialOutcome.BUILD_FAILED
    assert "SIGABRT" in trial.message
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("route", ["fast=on", "-gone=on", "-fast=warp", "-fast=on -fast=off"])
def test_a_wrong_route_is_one_line(settings: StudySettings, route: str) -> None:
    with pytest.raises(UserInputError) as caught:
        apply_route(settings, route, Recorder())
    assert "\n" not in str(caught.value)


def test_an_output_that_cannot_be_is_found_before_or_told(
    settings: StudySettings, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(UserInputError, match="is a file: name a folder with --out"):
        apply_route(settings, "", Recorder(), out=tmp_path / "file")
    with pytest.raises(EnvironmentNotFit, match="Cannot write to"):
        apply_route(settings, "", Recorder(), out=tmp_path / "file" / "below")
