"""Whole studies on a backend like a GPU compiler's."""

import math
from pathlib import Path
from typing import Any

import pytest

from smart_tuner.errors import StudyMismatch, UserInputError
from smart_tuner.measure.goal import Goal
from smart_tuner.measure.latency import Comparison, LatencySummary, Statistic
from smart_tuner.report.page import write_report
from smart_tuner.route.build_route import BuildRoute
from smart_tuner.simulate.model_file import write_simulated_model
from smart_tuner.storages.journal import open_study
from smart_tuner.storages.keys import OVER_LIMIT
from smart_tuner.study.files.admission import check_admission
from smart_tuner.study.files.folder import StudyFolder
from smart_tuner.study.files.names import STUDY_NAME
from smart_tuner.study.proof.result import TuneResult, Verdict
from smart_tuner.study.proof.winner import read_manifest
from smart_tuner.study.search.timing_cache import TIMING_CACHE
from smart_tuner.study.tune import tune
from smart_tuner.trial.evaluate import BaselineReport
from smart_tuner.trial.trial import Trial, TrialOutcome
from smart_tuner.validate.constraint import AccuracyConstraint
from tests.unit.study.pretend import planted_compiler
from tests.unit.trial.device_backend import builds

BACKENDS = Path(__file__).parents[1] / "trial"


@pytest.fixture(autouse=True)
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(BACKENDS)
    return write_simulated_model(tmp_path, planted_compiler())


def start(model: Path, **settings: Any) -> TuneResult:
    given = {"backend": "device_backend:DeviceBackend", "sampler": "fast", "seed": 1}
    return tune(model, study=model.parent / "study", budget=60, **{**given, **settings})


def kept(result: TuneResult) -> dict[str, Any]:
    return StudyFolder(result.study).read_settings()


@pytest.mark.usefixtures("brisk")
def test_timings_are_shared_where_that_changes_nothing_and_the_winners_ship(model: Path) -> None:
    result = start(model, only=("tactic", "big"), trials=3, max_engine_size="5000")
    assert result.verdict is Verdict.WINNER
    assert result.route == "-tactic=on"
    assert result.trials[OVER_LIMIT] == 1
    assert any("gives the same" in note for note in result.notes)
    assert any("for every route: launch graph" in note for note in result.notes)
    assert kept(result)["decided"] == {"launch": "graph"}
    manifest = read_manifest(result.study / "winner")
    assert manifest["base"] == {"launch": "graph"}
    assert manifest["engine"]["timing_cache"] == "timing.cache"
    assert (result.study / "winner" / "timing.cache").read_text() == "timing of ['tactic']\n"
    assert "timing.cache" in manifest["files"]
    assert manifest["reference_backend"] == "device_backend:Referee"
    assert manifest["limits"] == [{"name": "engine_size", "figure": 1000, "limit": 5000}]
    write_report(result.study)
    report = (result.study / "report.md").read_text()
    for words in (
        *("engine size up to 4.883 KiB", "over limit", "launch graph", "median end-to"),
        "the winner: engine size 1000 B is within --max-engine-size 4.883 KiB",
    ):
        assert words in report
    with pytest.raises(StudyMismatch, match="limit engine_size"):
        start(model, only=("tactic", "big"), trials=3)


@pytest.mark.usefixtures("brisk")
def test_timings_are_no_longer_shared_where_that_changes_engines(model: Path) -> None:
    result = start(model, only=("poison",), trials=2)
    assert result.route == "-poison=on", "its own timings, not those of the baseline, count"
    assert any("no longer shared" in note and "slower" in note for note in result.notes)
    study = open_study(result.study / "journal.log", STUDY_NAME, None, create=False)
    assert study.user_attrs[TIMING_CACHE]["shared"] is False
    assert study.trials[1].value == pytest.approx(1.5)
    before = len(builds(model))
    again = start(model, only=("poison",), trials=2, min_gain=1.05)
    assert again.verdict is Verdict.WINNER
    later = builds(model)[before:]
    assert {build["cache"] for build in later} == {""}
    assert {build["base"]["launch"] for build in later} == {"graph"}, "decided once for all"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"max_engine_size": 900}, "engine size 1000 B is over --max-engine-size 900 B. Raise"),
        ({"max_build_time": "2s"}, "build time 5 s is over --max-build-time 2 s"),
        ({"plugin": ("gone.so",)}, r"gone\.so: check the path of --plugin"),
    ],
)
def test_a_study_that_cannot_begin_says_why_and_leaves_nothing(
    model: Path, settings: dict[str, Any], words: str
) -> None:
    with pytest.raises(UserInputError, match=words):
        start(model, **settings)
    assert not (model.parent / "study").exists()


def test_another_plugin_of_the_same_name_is_another_study(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = tmp_path / "layers.so"
    library.write_text("one")
    monkeypatch.chdir(tmp_path)
    given: dict[str, Any] = {"plugin": ("layers.so",), "launch": "enqueue", "only": ("tactic",)}
    result = start(model, trials=1, **given)
    base = kept(result)["base"]
    assert base == {"plugins": str(library), "launch": "enqueue"}
    assert kept(result)["settings"]["plugin"] == [str(library)]
    library.write_text("two")
    with pytest.raises(StudyMismatch, match=r"plugin layers\.so was"):
        start(model, trials=1, **given)


def test_flags_of_the_base_win_over_its_file_and_are_refused_where_unknown(
    model: Path, tmp_path: Path
) -> None:
    base = tmp_path / "base.toml"
    base.write_text('launch = "graph"\nstreams = 2\n')
    result = start(model, base=base, launch="enqueue", only=("tactic",), trials=1)
    assert kept(result)["base"] == {"launch": "enqueue", "streams": "2"}
    with pytest.raises(UserInputError, match="launch"):
        tune(model, study=tmp_path / "other", backend="onnxruntime", launch="graph")
    assert not (tmp_path / "other").exists()


def test_a_tail_that_cannot_be_claimed_stops_the_study() -> None:
    summary = LatencySummary(8, *(1.0,) * 8)
    why = "No p99 is claimed: runs are timed in groups, which hides tails."
    comparison = Comparison("p", (0.0,), 0.0, math.inf, summary, summary, 1.0, (why,))
    trial = Trial(BuildRoute(), TrialOutcome.FEASIBLE, comparisons=(comparison,))
    report = BaselineReport(trial, {"p": 1.0}, repeatable=True)
    with pytest.raises(UserInputError, match=r"--statistic p99 .* timed in groups"):
        check_admission(report, AccuracyConstraint(), Goal(Statistic.P99))
    check_admission(report, AccuracyConstraint(), Goal())
