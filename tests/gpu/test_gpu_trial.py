from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import psutil
import pytest

from smart_tuner.errors import ChildDied, RunError
from smart_tuner.measure.stop_rule import StopRule
from smart_tuner.model.load import load_model
from smart_tuner.model.prepare import InputOptions, prepare_workload
from smart_tuner.model.tensors import save_tensors
from smart_tuner.model.workload import ReferencePair, WorkloadPoint
from smart_tuner.route.build_route import BuildRoute
from smart_tuner.trial.arm import RemoteArm
from smart_tuner.trial.evaluate import Evaluator, EvaluatorOptions
from smart_tuner.trial.trial import TrialOutcome
from smart_tuner.validate.constraint import AccuracyConstraint
from tests.gpu.gpu_models import NETWORKS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.gpu.conftest import Build

pytestmark = pytest.mark.gpu

WILD, DYING = "tests.gpu.misbehaving:WildBackend", "tests.gpu.misbehaving:DyingBackend"


@pytest.fixture(autouse=True)
def own_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


def written(name: str, folder: Path) -> Path:
    path = folder / f"{name}.inputs"
    save_tensors(path, NETWORKS[name].inputs[0])
    return path


def backend_name(request: pytest.FixtureRequest) -> str:
    return str(request.config.getoption("--backend", default="tensorrt"))


def test_a_broken_cuda_context_ends_only_its_child(build: Build, tmp_path: Path) -> None:
    engine, inputs = build("mlp", launch="enqueue"), written("mlp", tmp_path)
    with RemoteArm(EvaluatorOptions(WILD), tmp_path / "wild.log") as arm:
        arm.load(engine)
        with pytest.raises(RunError, match=r"cudaErrorIllegalAddress.*lost"):
            arm.time_block(inputs, 50)
        with pytest.raises(RunError, match=r"cudaErrorIllegalAddress.*lost"):
            arm.time_block(inputs, 1)
        pid = arm.pid
    assert not psutil.pid_exists(pid)
    with RemoteArm(EvaluatorOptions(WILD), tmp_path / "again.log") as arm:
        arm.load(engine)
        arm.infer(inputs, tmp_path / "again.outputs")


def test_a_child_that_dies_is_told_by_its_signal(build: Build, tmp_path: Path) -> None:
    with (
        RemoteArm(EvaluatorOptions(DYING), tmp_path / "dying.log") as arm,
        pytest.raises(ChildDied, match="SIGSEGV"),
    ):
        arm.load(build("mlp"))


def test_not_a_number_where_a_number_is_expected_is_a_violation(
    build: Build, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    inputs = written("quotient", tmp_path)
    trusted = tmp_path / "trusted.outputs"
    save_tensors(trusted, {"y": np.ones((2, 8), np.float32)})
    pair = ReferencePair("a", inputs, trusted)
    point = WorkloadPoint("default", 1.0, {"x": (2, 8), "z": (2, 8)}, (pair,), synthetic=True)
    options = EvaluatorOptions(backend_name(request), constraint=AccuracyConstraint(epsilon=1.0))
    with RemoteArm(options, tmp_path / "nan.log") as arm:
        arm.load(build("quotient"))
        (loss,) = arm.validate(point, pair)
    assert loss.loss == float("inf")
    assert "NaN or infinity" in loss.message


def test_a_route_is_tried_against_the_baseline(
    base: dict[str, str], models: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    model = load_model(models / "conv.onnx")
    workload, _ = prepare_workload(model, InputOptions(), tmp_path / "references")
    options: Any = EvaluatorOptions(
        backend_name(request), base, AccuracyConstraint(metric="linf", epsilon=0.05)
    )
    rule = StopRule.fixed(8, block_seconds=0.02)
    with Evaluator(workload, options, tmp_path / "study") as evaluator:
        evaluator.make_references()
        report = evaluator.check_baseline(rule)
        assert report.trial.outcome is TrialOutcome.FEASIBLE, report.trial.message
        assert evaluator.decided["launch"] in {"graph", "enqueue"}
        assert evaluator.platform.details["uuid"].startswith("GPU-")
        other = BuildRoute((("builder:optimization_level", "1"),))
        trial = evaluator.evaluate(other, tmp_path / "study" / "trials" / "1", rule)
    assert trial.outcome in {TrialOutcome.FEASIBLE, TrialOutcome.INFEASIBLE}, trial.message
    if trial.comparisons:
        assert 0.1 < trial.comparisons[0].gain < 10
