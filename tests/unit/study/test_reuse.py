"""What another study measured is not measured again."""

from pathlib import Path

import pytest

from smart_tuner.errors import StudyMismatch, UserInputError
from smart_tuner.storages.history import TrialRecord, finished_trials
from smart_tuner.storages.journal import open_study
from smart_tuner.study.files.folder import StudyFolder
from smart_tuner.study.files.names import STUDY_NAME
from smart_tuner.study.progress.events import Note
from smart_tuner.study.tune import tune
from tests.unit.study.pretend import Planted, Recorder


def records(study: Path) -> dict[str, TrialRecord]:
    found = finished_trials(open_study(StudyFolder(study).journal, STUDY_NAME, None, create=False))
    return {str(record.route): record for record in found if record.route.settings}


@pytest.mark.usefixtures("brisk")
def test_a_route_that_another_study_measured_costs_nothing(
    planted: Planted, tmp_path: Path
) -> None:
    before = records(planted.result.study)
    heard = Recorder()
    tune(
        planted.model,
        study=tmp_path / "again",
        reuse=[planted.result.study],
        listener=heard,
        **planted.settings,
    )
    # The same sampler with the same seed asks for the same routes.
    after = records(tmp_path / "again")
    assert after.keys() == before.keys()
    for route, record in after.items():
        assert record.outcome is before[route].outcome
        assert record.seconds == before[route].seconds
        assert record.half_width == before[route].half_width
    assert any("of other studies can count here" in note.text for note in heard.of(Note))


def test_a_study_of_something_else_is_refused(planted: Planted, tmp_path: Path) -> None:
    changed = {**planted.settings, "epsilon": 0.5}
    with pytest.raises(StudyMismatch, match=r"--reuse .*something else: epsilon was 0.001"):
        tune(planted.model, study=tmp_path / "other", reuse=[planted.result.study], **changed)


def test_a_folder_without_a_study_is_named(planted: Planted, tmp_path: Path) -> None:
    with pytest.raises(UserInputError, match="no study is there"):
        tune(planted.model, study=tmp_path / "other", reuse=[tmp_path], **planted.settings)
