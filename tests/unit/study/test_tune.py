"""Whole studies through real child processes, on pretended compilers."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from smart_tuner.errors import UserInputError
from smart_tuner.knobs.knob import Knob
from smart_tuner.simulate.compiler import SimulatedCompiler
from smart_tuner.simulate.effects import Failure, Noise, ValueEffect
from smart_tuner.simulate.generators import make_compiler
from smart_tuner.simulate.model_file import write_simulated_model
from smart_tuner.storages.history import TrialRecord, finished_trials
from smart_tuner.storages.journal import open_study
from smart_tuner.study.files.folder import StudyFolder
from smart_tuner.study.files.names import STUDY_NAME
from smart_tuner.study.progress.events import (
    Event,
    Note,
    PhaseStarted,
    RouteMeasured,
    TrialFinished,
)
from smart_tuner.study.proof.result import TuneResult, Verdict, read_result
from smart_tuner.study.proof.winner import read_manifest
from smart_tuner.study.setup.settings import make_settings
from smart_tuner.study.tune import tune
from smart_tuner.trial.trial import TrialOutcome
from tests.unit.study.pretend import QUIET, Planted, Recorder, planted_compiler


def start(model: Path, listener: Recorder | None = None, **settings: Any) -> TuneResult:
    chosen = {"backend": "replay", "metric": "linf", "budget": 60, "seed": 1, **settings}
    return tune(model, listener=listener or Recorder(), **chosen)


def records(result: TuneResult) -> tuple[TrialRecord, ...]:
    study = open_study(StudyFolder(result.study).journal, STUDY_NAME, None, create=False)
    return finished_trials(study)


def switches(*effects: ValueEffect, noise: Noise = QUIET) -> SimulatedCompiler:
    """One knob of two values for each effect."""
    knobs = tuple(Knob(effect.knob, ("off", "on"), "off") for effect in effects)
    return SimulatedCompiler(knobs, effects=effects, noise=noise)


class StopAt(Recorder):
    """Presses Ctrl-C when a phase begins."""

    def __init__(self, phase: str) -> None:
        super().__init__()
        self.phase = phase

    def __call__(self, event: Event) -> None:
        super().__call__(event)
        if isinstance(event, PhaseStarted) and event.phase == self.phase:
            raise KeyboardInterrupt


class TestWinner:
    def test_the_planted_gain_is_found_proven_and_cut_to_what_pays(
        self, planted_origin: Planted
    ) -> None:
        result = planted_origin.result
        assert result.verdict is Verdict.WINNER
        assert result.route == "-fast=on"
        assert result.gain == pytest.approx(math.exp(0.2), rel=0.01)
        assert result.route_gain
        assert result.route_gain.low > 1.01
        assert result.route_gain.samples == 5
        assert result.engine_gain
        assert result.engine_gain.value == pytest.approx(math.exp(0.2), rel=0.01)
        assert not result.indicative
        assert result.provisional
        assert result.bare_gain is None
        assert sum(result.trials.values()) == 9

    def test_what_is_faster_and_wrong_never_ships(self, planted_origin: Planted) -> None:
        by_route = {record.route: record for record in records(planted_origin.result)}
        harmful = {"lossy", "nan", "crash"}
        outcomes = {record.outcome for record in by_route.values()}
        assert {TrialOutcome.INFEASIBLE, TrialOutcome.BUILD_FAILED} <= outcomes
        for route, record in by_route.items():
            is_good = not harmful & route.values.keys()
            assert (record.outcome is TrialOutcome.FEASIBLE) is is_good, route

    def test_the_folder_holds_everything_and_nothing_else(self, planted_origin: Planted) -> None:
        study = planted_origin.result.study
        assert {path.name for path in study.iterdir()} == {
            *(".lock", "study.toml", "platform.json", "journal.log", "result.json"),
            "finalists.json",
            *("references", "engines", "trials", "winner"),
        }
        assert {path.name for path in (study / "engines").iterdir()} == {"baseline"}
        assert len(list((study / "trials").iterdir())) == 9
        files = {path.name for path in study.glob("trials/*/*")}
        assert files == {"route.txt", "child.log", "result.json"}
        assert not list(study.rglob("*.partial"))

    def test_a_winner_carries_its_proof(self, planted_origin: Planted) -> None:
        result = planted_origin.result
        manifest = read_manifest(result.study / "winner")
        assert manifest["route"] == "-fast=on"
        assert manifest["provisional"] is True
        assert manifest["platform"]["device"] == "simulated"
        assert manifest["gain"]["route_gain"] == result.to_json()["route_gain"]
        assert {row["loss"] for row in manifest["losses"]} == {0.0}
        shipped = json.loads((result.study / "winner" / "engine.json").read_text())
        assert shipped["values"] == {"fast": "on"}


class TestAgain:
    def test_the_same_call_gives_the_same_verdict_without_a_trial(self, planted: Planted) -> None:
        listener = Recorder()
        again = planted.again(listener)
        assert again == planted.result
        assert not listener.of(TrialFinished)
        assert not listener.of(RouteMeasured)

    @pytest.mark.usefixtures("brisk")
    def test_more_trials_go_on_where_it_stopped(self, planted: Planted) -> None:
        before = records(planted.result)
        listener = Recorder()
        again = planted.again(listener, trials=11, budget=70)
        assert [event.number for event in listener.of(TrialFinished)] == [9, 10]
        assert records(again)[:9] == before
        assert sum(again.trials.values()) == 11
        assert again.verdict is Verdict.WINNER
        assert again.route == "-fast=on"
        assert again.spent_seconds > planted.result.spent_seconds
        document = StudyFolder(again.study).read_settings()
        assert (document["settings"]["trials"], document["settings"]["budget"]) == (11, 70.0)
        assert document["seed"] == 1

    def test_another_smallest_gain_is_judged_anew(self, planted: Planted) -> None:
        listener = Recorder()
        again = planted.again(listener, min_gain=1.5)
        assert again.verdict is Verdict.DEFAULT_IS_BEST
        assert not listener.of(TrialFinished)
        assert not (again.study / "winner").exists()

    @pytest.mark.parametrize("harm", ["manifest", "engine", "gone", "result"])
    def test_a_damaged_verdict_is_not_kept(self, planted: Planted, harm: str) -> None:
        study = planted.result.study
        if harm == "manifest":
            (study / "winner" / "manifest.json").write_text("{")
        elif harm == "engine":
            (study / "winner" / "engine.json").write_bytes(bytes(1024))
        elif harm == "gone":
            (study / "winner" / "engine.json").unlink()
        else:
            (study / "result.json").write_text("")
        with pytest.raises(KeyboardInterrupt):
            planted.again(StopAt("finalists"))

    @pytest.mark.usefixtures("brisk")
    def test_an_interrupted_conclusion_is_made_by_the_next_call(self, planted: Planted) -> None:
        study = planted.result.study
        (study / "result.json").unlink()
        for phase in ("finalists", "report"):
            with pytest.raises(KeyboardInterrupt):
                planted.again(StopAt(phase))
            assert not (study / "result.json").exists()
        listener = Recorder()
        again = planted.again(listener)
        assert again.route == "-fast=on"
        assert not listener.of(TrialFinished)
        assert read_manifest(study / "winner")["route"] == "-fast=on"
        assert read_result(study / "result.json") == again
        assert not (study / "engines" / "finalists").exists()


class TestDefaultIsBest:
    @pytest.mark.usefixtures("brisk")
    def test_a_compiler_without_gains(self, tmp_path: Path) -> None:
        compiler = make_compiler("null", seed=2, knob_count=8)
        result = start(write_simulated_model(tmp_path, compiler), trials=6)
        assert result.verdict is Verdict.DEFAULT_IS_BEST
        assert result.sentence.startswith("No gain of 1.01x or more")
        assert result.route == ""
        assert result.gain == 1.0
        assert not (result.study / "winner").exists()

    def test_everything_crashes(self, tmp_path: Path) -> None:
        kinds = (Failure.BUILD_ERROR, Failure.ABORT, Failure.RUN_ERROR, Failure.NOT_APPLIED)
        effects = (ValueEffect(kind.value, "on", log_latency=-1.0, failure=kind) for kind in kinds)
        model = write_simulated_model(tmp_path, switches(*effects))
        result = start(model, trials=5, sampler="fast")
        assert result.verdict is Verdict.DEFAULT_IS_BEST
        assert "all 4 routes that were tried failed or broke epsilon" in result.sentence
        assert result.trials == {
            "no effect": 1,
            "build_failed": 2,
            "run_failed": 1,
            "not_applied": 1,
        }

    def test_nothing_has_an_effect(self, tmp_path: Path) -> None:
        effects = (ValueEffect(f"idle{n}", "on", noop=True) for n in range(3))
        model = write_simulated_model(tmp_path, switches(*effects))
        result = start(model, trials=4)
        assert result.verdict is Verdict.DEFAULT_IS_BEST
        assert result.trials == {"no effect": 4}
        for record in records(result):
            assert record.unchanged
            assert "measure" not in record.seconds
            stored = json.loads((result.study / record.folder / "result.json").read_text())
            assert stored["comparisons"] == []

    def test_nan_and_losses_over_epsilon_only(self, tmp_path: Path) -> None:
        model = write_simulated_model(
            tmp_path,
            switches(
                ValueEffect("lossy", "on", log_latency=-0.5, loss=0.011),
                ValueEffect("nan", "on", log_latency=-0.5, failure=Failure.NAN),
            ),
        )
        result = start(model, trials=4, epsilon=0.01)
        assert result.verdict is Verdict.DEFAULT_IS_BEST
        assert result.trials == {"no effect": 1, "infeasible": 3}


def test_a_budget_that_is_too_small_is_said_so(tmp_path: Path) -> None:
    model = write_simulated_model(tmp_path, planted_compiler())
    result = start(model, budget=0.5)
    assert result.verdict is Verdict.UNDECIDED
    assert "--budget" in result.sentence
    assert result.trials == {}


@pytest.mark.usefixtures("brisk")
def test_production_settings(tmp_path: Path) -> None:
    """A base, two weighted points and a baseline that is not exact."""
    model = write_simulated_model(tmp_path, planted_compiler(base_loss=0.002))
    base, workload = tmp_path / "base.toml", tmp_path / "points.toml"
    base.write_text("slow = true\n")
    workload.write_text('[[point]]\nname = "often"\nweight = 3\n\n[[point]]\nname = "rare"\n')
    settings: dict[str, Any] = {"base": base, "workload": workload, "trials": 6}
    settings["freeze"] = ["nan", "crash", "idle"]

    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(UserInputError) as caught:
        start(model, **settings)
    text = str(caught.value)
    assert "output y loses 0.002 (linf)" in text
    assert "allowed is 0.001" in text
    assert "--metric linf --epsilon auto" in text
    assert "--reference baseline" in text
    assert sorted(path.name for path in tmp_path.iterdir()) == before

    listener = Recorder()
    result = start(model, listener, epsilon="auto", **settings)
    assert result.verdict is Verdict.WINNER
    # The base turned `slow` on, so turning it off is a gain over it too.
    assert result.route == "-fast=on -slow=off"
    assert result.gain == pytest.approx(math.exp(0.3), rel=0.01)
    assert result.bare_gain
    assert result.bare_gain.value == pytest.approx(math.exp(0.2), rel=0.01)
    notes = [note.text for note in listener.of(Note)]
    assert any("2 times the baseline's own loss: y 0.00" in note for note in notes)
    constraint = StudyFolder(result.study).read_settings()["accuracy"]
    assert constraint["per_output"]["y"] == pytest.approx(0.004, rel=1e-3)
    points = {
        tuple(item["point"] for item in json.loads(path.read_text())["comparisons"])
        for path in result.study.glob("trials/*/result.json")
    }
    assert points == {(), ("often", "rare")}
    assert read_manifest(result.study / "winner")["base"] == {"slow": "on"}
    assert {path.name for path in (result.study / "engines").iterdir()} == {"baseline"}


def test_reference_baseline_judges_against_the_baseline(tmp_path: Path) -> None:
    model = write_simulated_model(tmp_path, planted_compiler(base_loss=0.5))
    result = start(model, trials=1, reference="baseline")
    assert result.trials == {"no effect": 1}


@pytest.mark.usefixtures("brisk")
def test_held_out_pairs_that_fail_let_the_default_ship(tmp_path: Path) -> None:
    pair = tmp_path / "held" / "strange"
    pair.mkdir(parents=True)
    np.savez(pair / "inputs.npz", x=np.full((1, 16), 0.5, np.float32))
    np.savez(pair / "outputs.npz", y=np.full((1, 16), 9.0, np.float32))
    compiler = switches(ValueEffect("fast", "on", log_latency=-0.2))
    model = write_simulated_model(tmp_path, compiler)
    result = start(model, trials=2, held_out=[str(tmp_path / "held")])
    assert result.verdict is Verdict.DEFAULT_IS_BEST
    assert "(-fast=on) fails on held-out inputs: output 'y'" in result.sentence
    assert result.route == ""
    assert not (result.study / "winner").exists()


def test_phases_are_told_in_their_order(planted_origin: Planted) -> None:
    assert planted_origin.phases == (
        *("prepare", "prepare", "baseline", "search", "finalists", "reset", "report"),
    )


def test_complete_settings_leave_no_room_for_others(planted: Planted) -> None:
    settings = make_settings({"model": planted.model})
    with pytest.raises(UserInputError, match="leave no room for others: trials"):
        tune(settings, trials=3)
