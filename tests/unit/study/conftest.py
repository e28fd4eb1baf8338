import dataclasses
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import optuna
import pytest

from smart_tuner.measure.stop_rule import StopRule
from smart_tuner.route.build_route import BuildRoute
from smart_tuner.simulate.model_file import write_simulated_model
from smart_tuner.study.progress.budget import Budget
from smart_tuner.study.progress.events import PhaseStarted
from smart_tuner.study.proof.fresh import FreshBuilder
from smart_tuner.study.proof.result import read_result
from smart_tuner.study.tune import tune
from tests.conftest import MakeOnce
from tests.unit.study.pretend import (
    Answer,
    Planted,
    PretendEvaluator,
    Recorder,
    planted_compiler,
)

MakeBuilder = Callable[..., tuple[FreshBuilder, PretendEvaluator]]


@pytest.fixture(autouse=True)
def _here(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    monkeypatch.chdir(tmp_path)
    # A device lock of one's own: tests in parallel need not wait for each other.
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("runtime")))
    measure_briefly(monkeypatch)


def measure_briefly(patch: pytest.MonkeyPatch) -> None:
    """Warm up for an instant: pretended latencies are the same from the first one on."""
    patch.setattr("smart_tuner.measure.blocks.CAP_FACTOR", 0.1)


@pytest.fixture
def brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Confirm finalists with as few builds as will do, where their number is not the point."""
    monkeypatch.setattr("smart_tuner.study.proof.fresh.PAIRS", (4, 4))
    monkeypatch.setattr("smart_tuner.study.proof.finalists.SHORTLIST", 1)
    monkeypatch.setattr("smart_tuner.study.proof.finalists.REPORT_ROUNDS", 2)
    monkeypatch.setattr("smart_tuner.study.proof.bare.ROUNDS", 2)


@pytest.fixture
def make_builder(tmp_path: Path) -> MakeBuilder:
    """Make a builder over a pretended evaluator, from what each route gives."""

    def make(
        answer: Callable[[BuildRoute], Answer],
        *,
        budget: Budget | None = None,
        weights: Mapping[str, float] | None = None,
    ) -> tuple[FreshBuilder, PretendEvaluator]:
        evaluator = PretendEvaluator(answer)
        builder = FreshBuilder(
            evaluator=evaluator,
            folder=tmp_path / "finalists",
            weights=weights or {"default": 1.0},
            budget=budget or Budget(1000.0),
            rule=StopRule.fixed(4),
            listener=Recorder(),
        )
        return builder, evaluator

    return make


PLANTED: dict[str, Any] = {
    "backend": "replay",
    "metric": "linf",
    "budget": 60,
    "trials": 9,
    "seed": 1,
}


@pytest.fixture(scope="session")
def planted_origin(make_once: MakeOnce) -> Planted:
    """One finished study with a winner; nothing in it may be changed."""
    folder = make_once("planted", make_planted)
    return Planted(
        folder / "model.onnx",
        read_result(folder / "study" / "result.json"),
        PLANTED,
        tuple(json.loads((folder / "phases.json").read_text())),
    )


def make_planted(folder: Path) -> None:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    model = write_simulated_model(folder, planted_compiler())
    listener = Recorder()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(folder))
        patch.setattr("smart_tuner.study.proof.fresh.PAIRS", (4, 4))
        measure_briefly(patch)
        tune(model, study=folder / "study", listener=listener, **PLANTED)
    phases = [event.phase for event in listener.of(PhaseStarted)]
    (folder / "phases.json").write_text(json.dumps(phases))


@pytest.fixture
def planted(planted_origin: Planted, tmp_path: Path) -> Planted:
    """A copy of that study, to do with as a test likes."""
    folder = tmp_path / "planted"
    shutil.copytree(planted_origin.model.parent, folder)
    settings = folder / "study" / "study.toml"
    moved = settings.read_text().replace(str(planted_origin.model.parent), str(folder))
    settings.write_text(moved)
    return Planted(
        folder / planted_origin.model.name,
        dataclasses.replace(planted_origin.result, study=folder / "study"),
        planted_origin.settings,
        planted_origin.phases,
    )
