from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from smart_tuner.errors import BackendNotFound, ModelError
from smart_tuner.knobs.read import read_database
from smart_tuner.measure.stop_rule import StopRule
from smart_tuner.model.tensors import load_tensors
from smart_tuner.model.workload import Workload
from smart_tuner.route.build_route import BuildRoute
from smart_tuner.trial.arm import RemoteArm
from smart_tuner.trial.evaluate import Evaluator, EvaluatorOptions
from smart_tuner.trial.trial import TrialOutcome

MakeEvaluator = Callable[..., Evaluator]

RULE = StopRule(min_pairs=4, max_pairs=4, block_seconds=0.004, warm_up_seconds=0.002)


def test_missing_references_are_made_and_given_ones_kept(
    make_evaluator: MakeEvaluator, workload: Workload, tmp_path: Path
) -> None:
    kept = workload.points[0].pairs[0].outputs
    kept.parent.mkdir()
    kept.write_text("given")
    make_evaluator(given=False)
    assert kept.read_text() == "given"
    for pair in (*workload.points[0].pairs[1:], *workload.points[1].pairs):
        x, y = load_tensors(pair.inputs)["x"], load_tensors(pair.outputs)["y"]
        assert np.array_equal(y, 2 * x)
    assert {path.name for path in (tmp_path / "baseline").iterdir()} == {"reference.log"}


def test_references_can_come_from_the_baseline(
    make_evaluator: MakeEvaluator, workload: Workload
) -> None:
    evaluator = make_evaluator({"offset": "1"}, given=False, reference_from_baseline=True)
    pair = workload.points[0].pairs[0]
    assert load_tensors(pair.outputs)["y"][0] == 2 * load_tensors(pair.inputs)["x"][0] + 1
    assert evaluator.check_baseline(RULE).trial.outcome is TrialOutcome.FEASIBLE


def test_a_model_that_gives_no_references_is_named(make_evaluator: MakeEvaluator) -> None:
    with pytest.raises(ModelError, match=r"No reference outputs can be made: .*SIGABRT"):
        make_evaluator({"run": "SIGABRT"}, given=False)


def test_the_baseline_is_reported(make_evaluator: MakeEvaluator, tmp_path: Path) -> None:
    evaluator = make_evaluator()
    report = evaluator.check_baseline(RULE)
    assert report.trial.route == BuildRoute()
    assert report.trial.outcome is TrialOutcome.FEASIBLE
    assert report.trial.engine is not None
    assert report.trial.engine.fingerprint == evaluator.baseline_fingerprint
    assert dict(report.median_ms) == {"small": 2.0, "large": 2.0}
    assert report.repeatable
    assert report.notes == ()
    assert evaluator.platform.device == "toy device"
    names = {path.name for path in (tmp_path / "baseline").iterdir()}
    assert names == {"child.log", "engine"}


def test_a_baseline_over_epsilon_is_told_with_its_loss(make_evaluator: MakeEvaluator) -> None:
    report = make_evaluator({"offset": "1"}).check_baseline(RULE)
    assert report.trial.outcome is TrialOutcome.INFEASIBLE
    assert "l0 loss 1 is over epsilon" in report.trial.message


def test_a_random_model_is_told_with_the_output_and_the_size(
    make_evaluator: MakeEvaluator,
) -> None:
    report = make_evaluator({"random": "yes"}).check_baseline(RULE)
    assert not report.repeatable
    assert len(report.notes) == 4
    assert report.notes[0].startswith(
        "Point 'small', same inputs twice in one session: output 'y' differs in 100 % of its elements"
    )
    assert "in a fresh process" in report.notes[1]


def test_a_first_run_that_differs_only_in_a_fresh_session_is_noticed(
    make_evaluator: MakeEvaluator,
) -> None:
    report = make_evaluator({"first_run_differs": "yes"}).check_baseline(RULE)
    assert not report.repeatable


def test_platform_and_knobs_are_asked_in_a_child(
    make_evaluator: MakeEvaluator, workload: Workload, tmp_path: Path
) -> None:
    make_evaluator()
    with RemoteArm(EvaluatorOptions("toy_backend:ToyBackend"), tmp_path / "log") as arm:
        assert arm.platform().details == {"cpus": "2"}
        assert read_database(arm.knobs(workload.model)).knobs[0].idle == "idle on toy.model"
        assert read_database(arm.knobs(None)).knobs[0].idle == ""


def test_a_missing_backend_is_the_same_error_as_in_the_parent(tmp_path: Path) -> None:
    with (
        RemoteArm(EvaluatorOptions("no_such_backend"), tmp_path / "log") as arm,
        pytest.raises(BackendNotFound, match="no_such_backend"),
    ):
        arm.platform()
