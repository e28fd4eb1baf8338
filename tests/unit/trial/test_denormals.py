"""A setting that flushes denormals must not blind the judge."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from smart_tuner.measure.stop_rule import StopRule
from smart_tuner.model.load import load_model
from smart_tuner.model.tensors import save_tensors
from smart_tuner.model.workload import ReferencePair, Workload, WorkloadPoint
from smart_tuner.route.build_route import BuildRoute
from smart_tuner.trial.evaluate import Evaluator, EvaluatorOptions
from smart_tuner.trial.trial import TrialOutcome
from smart_tuner.validate.constraint import AccuracyConstraint

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def workload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workload:
    """y = x * 1e-20 with x about 1e-20: every output is a denormal number."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    shape = [8]
    graph = helper.make_graph(
        [helper.make_node("Mul", ["x", "k"], ["y"])],
        "tiny",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(np.array(1e-20, np.float32), "k")],
    )
    opsets = [helper.make_opsetid("", 17)]
    path = tmp_path / "tiny.onnx"
    onnx.save_model(helper.make_model(graph, opset_imports=opsets, ir_version=9), path)
    pair = ReferencePair("pair", tmp_path / "pair.inputs", tmp_path / "pair.outputs")
    save_tensors(pair.inputs, {"x": np.linspace(1e-20, 9e-20, 8).astype(np.float32)})
    point = WorkloadPoint("default", 1.0, {"x": (8,)}, (pair,), synthetic=False)
    return Workload(load_model(path), (point,))


def test_flushed_denormals_are_a_loss_under_a_relative_metric(
    workload: Workload, tmp_path: Path
) -> None:
    constraint = AccuracyConstraint("l0", epsilon=1e-3, rtol=1e-3, atol=0.0)
    options = EvaluatorOptions("onnxruntime", constraint=constraint)
    route = BuildRoute((("session:set_denormal_as_zero", "on"),))
    with Evaluator(workload, options, tmp_path) as evaluator:
        evaluator.make_references()
        trial = evaluator.evaluate(route, tmp_path / "trial", StopRule.fixed(4))
        default = evaluator.evaluate(BuildRoute(), tmp_path / "default", StopRule.fixed(4))
    assert trial.outcome is TrialOutcome.INFEASIBLE
    assert [loss.loss for loss in trial.losses] == [1.0]
    assert default.outcome is TrialOutcome.FEASIBLE
