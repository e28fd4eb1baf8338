"""Studies that begin from what earlier ones taught."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from smart_tuner.cli.main import main
from smart_tuner.errors import UserInputError
from smart_tuner.knobs.knob import Knob
from smart_tuner.model.load import load_model
from smart_tuner.model.toml import read_toml
from smart_tuner.priors.build import build_prior
from smart_tuner.priors.files import read_prior, write_prior
from smart_tuner.priors.sources import observe_study
from smart_tuner.report.page import write_report
from smart_tuner.simulate.compiler import SimulatedCompiler
from smart_tuner.simulate.effects import Failure, ValueEffect
from smart_tuner.simulate.model_file import write_simulated_model
from smart_tuner.study.files.folder import StudyFolder
from smart_tuner.study.files.prior import (
    PRIOR_FILE,
    begin_prior,
    prior_notes,
    prior_outcome,
    study_beliefs,
)
from smart_tuner.study.progress.events import Note
from smart_tuner.study.proof.result import TuneResult
from smart_tuner.study.setup.identity import platform_identity
from smart_tuner.study.setup.plan import make_plan, query_platform
from smart_tuner.study.setup.settings import StudySettings, make_settings
from smart_tuner.study.tune import tune
from smart_tuner.validate.constraint import AccuracyConstraint
from tests.unit.study.pretend import QUIET, Recorder

pytestmark = pytest.mark.usefixtures("brisk")

NAMES = tuple(f"k{number}" for number in range(24))


def compiler(*effects: ValueEffect) -> SimulatedCompiler:
    knobs = tuple(Knob(name, ("off", "on"), "off") for name in NAMES)
    return SimulatedCompiler(knobs, effects=effects, noise=QUIET)


SIBLING = compiler(
    ValueEffect("k3", "on", log_latency=-0.2),
    ValueEffect("k7", "on", log_latency=-0.1),
    ValueEffect("k9", "on", failure=Failure.BUILD_ERROR),
)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "here").mkdir()
    return write_simulated_model(tmp_path / "here", SIBLING)


@pytest.fixture
def prior(model: Path, tmp_path: Path) -> Path:
    """What a study of the same network taught, here."""
    folder = tmp_path / "past" / "study"
    folder.mkdir(parents=True)
    platform = query_platform("replay")
    document = {
        "created": "2026-11-01T00:00:00+00:00",
        "identity": {
            "backend": "replay",
            "model": load_model(model).sha256,
            "metric": "linf",
            "epsilon": "0.001",
            **platform_identity(platform),
        },
        "space": {name: ["off", "on"] for name in NAMES},
    }
    (folder / "study.toml").write_text(tomli_w.dumps(document))
    rows = [_row("", SIBLING.base_latency_ms)]
    for number, name in enumerate(NAMES):
        for other in (NAMES[number - 5], NAMES[number - 9]):
            latency = SIBLING.latency_ms({name: "on", other: "on"})
            broken = "k9" in (name, other)
            rows.append(_row(f"-{name}=on -{other}=on", None if broken else latency))
    (folder / "trials.jsonl").write_text("\n".join(rows) + "\n")
    path = tmp_path / "past.prior.toml"
    write_prior(path, build_prior([observe_study(folder)]))
    return path


def notes(heard: Recorder) -> list[str]:
    return [note.text for note in heard.of(Note)]


def _row(route: str, latency: float | None) -> str:
    outcome = "build_failed" if latency is None else "feasible"
    return json.dumps({"route": route, "outcome": outcome, "latency_ms": latency})


def run(model: Path, name: str, listener: Recorder | None = None, **given: Any) -> TuneResult:
    return tune(settings(model, name, **given), listener=listener or Recorder())


def settings(model: Path, name: str, **given: Any) -> StudySettings:
    chosen = {"backend": "replay", "metric": "linf", "budget": 120, "seed": 1, "min_gain": 9}
    return make_settings({**chosen, "study": name, "model": model, **given})


def tried(result: TuneResult) -> list[str]:
    write_report(result.study)
    lines = (result.study / "trials.jsonl").read_text().splitlines()
    return [json.loads(line)["route"] for line in lines]


def test_a_prior_is_tried_first_said_and_answered_for(
    model: Path, prior: Path, tmp_path: Path
) -> None:
    heard = Recorder()
    result = run(model, "warm", heard, prior=(str(prior),), trials=3)
    assert any(
        note.startswith("prior: used 0.9") and "study past/study: same processor, same net" in note
        for note in notes(heard)
    )
    routes = tried(result)
    assert "k3=on" in routes[1]
    assert "k7=on" in routes[1]
    assert not any("k9=on" in route for route in routes)
    kept = read_toml(result.study / "study.toml", "study")
    assert kept["network"]["operators"]
    assert [*kept["prior"]["weights"]] == [study.id for study in read_prior(prior).studies]
    outcome = {row.knob: row for row in prior_outcome(result.study)}
    assert outcome["k3"].said_effect < -0.05
    assert outcome["k3"].tried > 0
    assert outcome["k9"].verdict == "not tried"
    report = (result.study / "report.md").read_text()
    assert "## What the prior said, and what was found" in report
    assert "`k3=on`" in report

    # Another session: the same beliefs, whatever it is called with and whatever became of the file.
    folder, plan = StudyFolder(result.study), make_plan(settings(model, "warm"))
    before = study_beliefs(folder, plan.space, plan.model)
    prior.unlink()
    again = Recorder()
    run(model, "warm", again, trials=3)
    assert study_beliefs(folder, plan.space, plan.model) == before is not None
    assert any("goes on so" in note for note in notes(again))
    used = result.study / PRIOR_FILE
    whole = used.read_text()
    used.write_text(whole.replace("tried = ", "tried = 1", 1))
    with pytest.raises(UserInputError, match="not the prior that this study began with"):
        study_beliefs(folder, plan.space, plan.model)
    used.unlink()
    with pytest.raises(UserInputError, match="Cannot read the prior"):
        study_beliefs(folder, plan.space, plan.model)


def test_newer_rules_on_operators_are_said() -> None:
    kept: dict[str, Any] = {"prior": {"asked": ["auto"], "relevance": 0}}
    (note,) = prior_notes(kept, ["auto"])
    assert "rules on which knobs concern which operators changed" in note
    assert prior_notes({}, ()) == ()


def test_no_prior_overrules_a_file_of_settings(model: Path, prior: Path, tmp_path: Path) -> None:
    config = tmp_path / "tune.toml"
    config.write_text(
        f'backend = "replay"\nmetric = "linf"\nbudget = 120\ntrials = 1\nprior = ["{prior}"]\n'
    )
    words = ["tune", str(model), "--config", str(config), "--quiet", "--no-report"]
    assert main([*words, "--study", "off", "--no-prior"]) == 0
    assert "prior" not in read_toml(tmp_path / "off" / "study.toml", "study")
    assert prior_outcome(tmp_path / "off") == ()
    plan = make_plan(settings(model, "off"))
    assert study_beliefs(StudyFolder(tmp_path / "off"), plan.space, plan.model) is None


def test_auto_finds_past_studies_around(model: Path, prior: Path, tmp_path: Path) -> None:
    prior.unlink()
    (tmp_path / "studies").mkdir()
    shutil.move(tmp_path / "past" / "study", tmp_path / "studies" / "sibling")
    plan = make_plan(settings(model, "auto", prior=("auto",)))
    folder = StudyFolder(tmp_path / "auto")
    folder.create()
    kept, said = begin_prior(plan, query_platform("replay"), AccuracyConstraint(), folder)
    assert kept["prior"]["asked"] == ["auto"]
    assert "study studies/sibling" in said[0]
    used = read_prior(folder.root / PRIOR_FILE)
    assert [study.name for study in used.studies] == ["studies/sibling"]


def test_a_prior_that_cannot_be_used_leaves_nothing_behind(
    model: Path, prior: Path, tmp_path: Path
) -> None:
    prior.write_text(prior.read_text().replace("active = ", "active = 9", 1))
    for given, said in (
        ({"prior": (str(prior),)}, "less than or equal to 1"),
        ({"prior": ("nowhere.prior.toml",)}, "Cannot read the prior"),
        ({"prior": ("auto",), "sampler": "tpe"}, "works with the default sampler"),
    ):
        with pytest.raises(UserInputError, match=said):
            run(model, "none", **given)
    assert not (tmp_path / "none").exists()
