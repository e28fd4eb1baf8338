"""A study goes on only with what it was begun with."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from filelock import FileLock

from smart_tuner.engine.platform import Platform
from smart_tuner.errors import StudyBusy, StudyMismatch, UserInputError
from smart_tuner.knobs.knob import Knob
from smart_tuner.simulate.compiler import SimulatedCompiler
from smart_tuner.simulate.effects import ValueEffect
from smart_tuner.simulate.model_file import write_simulated_model
from smart_tuner.storages.history import finished_trials
from smart_tuner.storages.journal import open_study
from smart_tuner.study.files.folder import StudyFolder
from smart_tuner.study.files.names import STUDY_NAME
from smart_tuner.study.files.resume import check_same
from smart_tuner.study.progress.events import Note
from smart_tuner.study.setup.plan import make_plan
from smart_tuner.study.setup.settings import make_settings
from smart_tuner.study.tune import tune
from smart_tuner.trial.trial import TrialOutcome
from tests.unit.study.pretend import QUIET, Planted, Recorder, content

HERE = Path(__file__).parent
PLATFORM = Platform("simulated", "simulated", "replay 1", "simulated")


def another_model(model: Path) -> Path:
    """The same network under another name of its graph: other bytes."""
    changed = onnx.load(str(model))
    changed.graph.name = "another"
    path = model.with_name("another.onnx")
    onnx.save(changed, str(path))
    shutil.copy2(f"{model}.replay.json", f"{path}.replay.json")
    return path


def test_everything_that_changed_is_listed_and_the_study_left_untouched(
    planted: Planted, tmp_path: Path
) -> None:
    base = tmp_path / "base.toml"
    base.write_text('slow = "on"\n')
    study = planted.result.study
    before = content(study)
    with pytest.raises(StudyMismatch) as caught:
        planted.again(
            model=another_model(planted.model),
            metric="l1",
            epsilon=0.5,
            base=base,
            freeze=["idle"],
            seed=2,
            reference="baseline",
            rtol=0.1,
        )
    text = str(caught.value)
    for words in (
        "model was ",
        "metric was linf, is l1",
        "epsilon was 0.001, is 0.5",
        "base slow was not there, is on",
        "knobs no longer searched are idle",
        "values of slow was off|on, is on|off",
        "seed was 1, is 2",
        "reference outputs was unoptimized, is baseline",
        "tolerances was rtol 0.001, atol 0.0001, is rtol 0.1, atol 0.0001",
        "Restore what changed, or start a new study with --study OTHER_FOLDER.",
    ):
        assert words in text, words
    assert "\n" not in text
    assert content(study) == before
    assert planted.again() == planted.result


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"input_range": ["x:0:5"]}, "inputs of pair synthetic-0 changed"),
        ({"inputs": ["x.npz"]}, "pairs synthetic-0, synthetic-1 are now x"),
        ({"held_out": ["x.npz"]}, "pairs synthetic-0, synthetic-1 are now"),
    ],
    ids=["range", "inputs", "held-out"],
)
def test_other_inputs_are_named(
    planted: Planted, tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    np.savez(tmp_path / "x.npz", x=np.zeros((1, 16), np.float32))
    before = content(planted.result.study)
    with pytest.raises(StudyMismatch) as caught:
        planted.again(**changes)
    assert words in str(caught.value)
    assert "Restore what changed, or start a new study" in str(caught.value)
    assert content(planted.result.study) == before


def test_limits_and_the_sampler_may_change(planted: Planted) -> None:
    again = planted.again(sampler="random", trial_timeout=100, memory_limit="8G", trials=3)
    assert again == planted.result


def test_a_seed_that_is_left_out_is_the_study_s(planted: Planted) -> None:
    assert planted.again(seed=None) == planted.result


def test_a_missing_seed_is_drawn_once_and_kept(tmp_path: Path) -> None:
    model = write_simulated_model(tmp_path, threads_compiler())
    settings: dict[str, Any] = {"backend": "replay", "metric": "linf", "trials": 1}
    first = tune(model, **settings)
    seed = StudyFolder(first.study).read_settings()["seed"]
    assert tune(model, **settings) == first
    assert StudyFolder(first.study).read_settings()["seed"] == seed
    with pytest.raises(StudyMismatch, match=f"seed was {seed}, is {seed + 1}"):
        tune(model, **settings, seed=seed + 1)


def test_changed_reference_files_are_noticed(planted: Planted) -> None:
    pairs = sorted(planted.result.study.glob("references/default/*.inputs"))
    shutil.copy2(pairs[0], pairs[1])
    with pytest.raises(UserInputError, match="was changed since the study began"):
        planted.again()


def test_a_newer_study_is_not_touched(planted: Planted) -> None:
    file = planted.result.study / "study.toml"
    file.write_text(file.read_text().replace("schema_version = 1", "schema_version = 9"))
    before = content(planted.result.study)
    with pytest.raises(UserInputError, match="upgrade smart_tuner"):
        planted.again()
    assert content(planted.result.study) == before


@pytest.mark.parametrize("has_begun", [True, False])
def test_a_busy_folder_is_left_to_the_one_who_works_in_it(
    planted: Planted, has_begun: bool
) -> None:
    """Even before there is a study.toml, whose absence usually means a start that failed."""
    study = planted.result.study
    if not has_begun:
        for path in study.iterdir():
            if path.name not in {".lock", "references", "engines"}:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
    before = content(study)
    with FileLock(study / ".lock"), pytest.raises(StudyBusy, match="Another smart-tuner works"):
        planted.again()
    assert content(study) == before


def test_a_start_that_was_killed_is_taken_over(tmp_path: Path) -> None:
    model = write_simulated_model(tmp_path, threads_compiler())
    study = tmp_path / "study"
    (study / "references" / "default").mkdir(parents=True)
    (study / "engines").mkdir()
    for name in (".lock", "platform.json", "study.toml.partial", "references/x.partial"):
        (study / name).touch()
    result = tune(model, study=study, backend="replay", metric="linf", trials=1)
    assert result.trials == {"no effect": 1}
    assert not list(study.rglob("*.partial"))


def test_a_study_that_moved_goes_on(planted: Planted) -> None:
    moved = planted.result.study.rename(planted.model.parent / "elsewhere")
    assert planted.again(study=moved).route == planted.result.route


class TestSpace:
    """What differs, seen without a process."""

    @pytest.fixture
    def document(self, planted: Planted) -> dict[str, Any]:
        return StudyFolder(planted.result.study).read_settings()

    def check(self, planted: Planted, document: dict[str, Any]) -> Any:
        settings = {"model": planted.model, **planted.settings}
        plan = make_plan(make_settings(settings))
        return check_same(plan, PLATFORM, document, StudyFolder(planted.result.study))

    def test_nothing_differs(self, planted: Planted, document: dict[str, Any]) -> None:
        continued = self.check(planted, document)
        assert continued.notes == ()
        assert continued.missing == frozenset()
        assert {k: list(v) for k, v in continued.space.choices.items()} == document["space"]

    @pytest.mark.parametrize(
        ("values", "words"),
        [
            (["off", "on", "auto"], "values of fast was off|on|auto, is off|on"),
            (["on", "off"], "values of fast was on|off, is off|on"),
            (["off"], "values of fast was off, is off|on"),
        ],
    )
    def test_changed_values_are_refused_before_the_first_trial(
        self, planted: Planted, document: dict[str, Any], values: list[str], words: str
    ) -> None:
        document["space"]["fast"] = values
        with pytest.raises(StudyMismatch) as caught:
            self.check(planted, document)
        assert words in str(caught.value)

    def test_a_knob_that_is_new_is_refused(
        self, planted: Planted, document: dict[str, Any]
    ) -> None:
        del document["space"]["idle"]
        with pytest.raises(StudyMismatch, match="knobs newly searched are idle"):
            self.check(planted, document)

    def test_another_version_is_refused(self, planted: Planted, document: dict[str, Any]) -> None:
        document["identity"]["backend version"] = "replay 0"
        document["identity"]["knob database"] = "0"
        with pytest.raises(StudyMismatch, match=r"version was replay 0, is replay 1; knob data"):
            self.check(planted, document)


def threads_compiler() -> SimulatedCompiler:
    knobs = (Knob("threads", ("auto", "1", "2", "3"), "auto"), Knob("mode", ("a", "b"), "a"))
    effects = (
        ValueEffect("threads", "1", log_latency=0.1),
        ValueEffect("threads", "2", log_latency=0.05),
    )
    return SimulatedCompiler(knobs, effects=effects, noise=QUIET)


class TestQuota:
    @pytest.fixture
    def model(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.syspath_prepend(HERE)
        return write_simulated_model(tmp_path, threads_compiler())

    def tune(self, model: Path, trials: int) -> list[str]:
        listener = Recorder()
        tune(
            model,
            listener=listener,
            study=model.parent / "study",
            backend="quota_backend:QuotaBackend",
            metric="linf",
            trials=trials,
            seed=4,
            sampler="fast",
        )
        return [note.text for note in listener.of(Note)]

    def test_fewer_processors_warn_and_their_values_count_as_not_applied(
        self, model: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SMART_TUNER_TEST_QUOTA", "2")
        assert not any("cpu_quota" in note for note in self.tune(model, trials=1))
        monkeypatch.setenv("SMART_TUNER_TEST_QUOTA", "1")
        notes = self.tune(model, trials=4)
        assert any(note.startswith("platform cpu_quota was 2, is 1: ") for note in notes)
        assert any("does not offer -threads=2 any more" in note for note in notes)
        study = open_study(
            StudyFolder(model.parent / "study").journal, STUDY_NAME, None, create=False
        )
        outcomes = {str(r.route): r.outcome for r in finished_trials(study)}
        assert outcomes["-threads=2"] is TrialOutcome.NOT_APPLIED
        assert outcomes["-threads=1"] is TrialOutcome.FEASIBLE

    def test_more_processors_warn_and_the_study_keeps_its_values(
        self, model: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SMART_TUNER_TEST_QUOTA", "2")
        self.tune(model, trials=1)
        monkeypatch.setenv("SMART_TUNER_TEST_QUOTA", "3")
        monkeypatch.setenv("SMART_TUNER_TEST_DRIVER", "kernel 2")
        notes = self.tune(model, trials=1)
        assert any(note.startswith("platform cpu_quota was 2, is 3: ") for note in notes)
        assert any(note.startswith("driver was kernel 1, is kernel 2: ") for note in notes)
        space = StudyFolder(model.parent / "study").read_settings()["space"]
        assert space["threads"] == ["auto", "1", "2"]
