import json
import math
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import psutil
import pytest

from smart_tuner.engine.process import ChildProcess
from smart_tuner.errors import EnvironmentNotFit, ModelError, UserInputError
from smart_tuner.measure.stop_rule import StopRule
from smart_tuner.model.workload import Workload
from smart_tuner.route.build_route import BuildRoute
from smart_tuner.trial.evaluate import Evaluator, drop_engine
from smart_tuner.trial.record import trial_from_json
from smart_tuner.trial.trial import Trial, TrialOutcome
from smart_tuner.validate.constraint import AccuracyConstraint

MakeEvaluator = Callable[..., Evaluator]

RULE = StopRule(min_pairs=6, max_pairs=6, block_seconds=0.004, warm_up_seconds=0.002)


def route(**settings: str) -> BuildRoute:
    return BuildRoute(tuple(sorted(settings.items())))


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def stored(folder: Path) -> Trial:
    return trial_from_json(json.loads((folder / "result.json").read_text()))


def test_a_good_route_is_built_judged_and_measured_at_every_point(
    make_evaluator: MakeEvaluator, tmp_path: Path
) -> None:
    folder = tmp_path / "trials" / "1"
    trial = make_evaluator().evaluate(route(latency_ms="1", offset="0"), folder, RULE)
    assert trial.outcome is TrialOutcome.FEASIBLE
    assert trial.message == ""
    assert not trial.unchanged
    judged = [(loss.point, loss.pair) for loss in trial.losses]
    assert judged == [("small", "a"), ("small", "b"), ("large", "a"), ("large", "b")]
    assert [item.point for item in trial.comparisons] == ["small", "large"]
    assert all(item.gain == pytest.approx(2.0) for item in trial.comparisons)
    assert set(trial.seconds) == {"build", "validate", "wait", "measure", "total"}
    assert list(trial.starts) == ["build", "validate", "measure"]
    assert sorted(trial.starts.values()) == list(trial.starts.values())
    since = datetime.now(timezone.utc).timestamp() - trial.starts["build"]
    assert 0 < since < 60
    assert trial.engine is not None
    assert files(folder) == {"route.txt", "child.log", "result.json", "engine/toy.json"}
    assert (folder / "route.txt").read_text() == "-latency_ms=1 -offset=0\n"
    assert stored(folder) == trial
    assert json.loads((folder / "result.json").read_text())["mode"] == "one process per arm"
    drop_engine(folder)
    assert files(folder) == {"route.txt", "child.log", "result.json"}


def test_the_baselines_engine_again_is_not_measured(
    make_evaluator: MakeEvaluator, tmp_path: Path
) -> None:
    evaluator = make_evaluator()
    trial = evaluator.evaluate(route(idle="1"), tmp_path / "1", RULE)
    assert trial.unchanged
    assert trial.outcome is TrialOutcome.FEASIBLE
    assert trial.comparisons == ()
    assert {loss.output for loss in trial.losses} == {"y"}
    assert trial.engine is not None
    assert trial.engine.fingerprint == evaluator.baseline_fingerprint


FAILURES = [
    ({"build": "error"}, TrialOutcome.BUILD_FAILED, "the toy does not build"),
    ({"build": "not_applied"}, TrialOutcome.NOT_APPLIED, "did not take"),
    ({"build": "bug"}, TrialOutcome.BUILD_FAILED, "KeyError: 'MISSING'"),
    ({"build": "SIGSEGV"}, TrialOutcome.BUILD_FAILED, "while building: killed by SIGSEGV"),
    ({"build": "memory_error"}, TrialOutcome.BUILD_FAILED, "^out of memory"),
    ({"load": "error"}, TrialOutcome.RUN_FAILED, "the toy does not load"),
    ({"run": "error"}, TrialOutcome.RUN_FAILED, "the toy does not run"),
    ({"run": "segfault"}, TrialOutcome.RUN_FAILED, "while validating: killed by SIGSEGV"),
    ({"run": "SIGKILL"}, TrialOutcome.RUN_FAILED, r"SIGKILL \(out of memory\?\)"),
    ({"time": "error"}, TrialOutcome.RUN_FAILED, "cannot be timed"),
    ({"time": "SIGABRT"}, TrialOutcome.RUN_FAILED, "while measuring: killed by SIGABRT"),
    ({"latency_ms": "nan"}, TrialOutcome.RUN_FAILED, "reported nan ms"),
    ({"latency_ms": "inf"}, TrialOutcome.RUN_FAILED, "reported inf ms"),
]


def test_every_failure_is_an_outcome_and_the_baseline_survives(
    make_evaluator: MakeEvaluator, tmp_path: Path
) -> None:
    evaluator = make_evaluator()
    for number, (settings, outcome, message) in enumerate(FAILURES):
        folder = tmp_path / str(number)
        trial = evaluator.evaluate(route(**settings), folder, RULE)
        assert (trial.outcome, trial.comparisons) == (outcome, ()), settings
        assert pytest.raises(ValueError, match=message).matches(ValueError(trial.message)), trial
        assert "\n" not in trial.message
        assert stored(folder) == trial
        allowed = {"route.txt", "child.log", "result.json"} | (
            {"engine/toy.json"} if trial.engine else set()
        )
        assert files(folder) == allowed
    log = (tmp_path / "2" / "child.log").read_text()
    assert "Traceback" in log
    good = evaluator.evaluate(route(latency_ms="1"), tmp_path / "good", RULE)
    assert good.outcome is TrialOutcome.FEASIBLE
    assert len((tmp_path / "model" / "baseline.pids").read_text().split()) == 1


@pytest.mark.parametrize("phase", ["build", "run", "time"])
def test_a_hang_is_timed_out(make_evaluator: MakeEvaluator, tmp_path: Path, phase: str) -> None:
    evaluator = make_evaluator(build_timeout_seconds=4.0, run_timeout_seconds=4.0)
    _ = evaluator.baseline_fingerprint
    trial = evaluator.evaluate(route(**{phase: "hang"}), tmp_path / "1", RULE, deadline_seconds=2)
    assert trial.outcome is TrialOutcome.TIMED_OUT
    assert "passed its deadline" in trial.message
    assert trial.seconds["total"] < 4


def test_a_deadline_that_is_over_starts_nothing_long(
    make_evaluator: MakeEvaluator, tmp_path: Path
) -> None:
    evaluator = make_evaluator()
    trial = evaluator.evaluate(route(latency_ms="1"), tmp_path / "1", RULE, deadline_seconds=0)
    assert trial.outcome is TrialOutcome.TIMED_OUT


def test_the_memory_limit_of_a_child_is_an_outcome(
    make_evaluator: MakeEvaluator, tmp_path: Path
) -> None:
    evaluator = make_evaluator(memory_limit_bytes=500_000_000)
    trial = evaluator.evaluate(route(build="memory"), tmp_path / "1", RULE)
    assert trial.outcome is TrialOutcome.BUILD_FAILED
    assert re.search(r"out of memory: 0\.5\d* GB over the limit of 0\.5 GB", trial.message)


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL])
def test_a_child_killed_in_mid_trial_is_named_and_the_next_trial_is_healthy(
    make_evaluator: MakeEvaluator, tmp_path: Path, number: signal.Signals
) -> None:
    evaluator = make_evaluator()
    _ = evaluator.baseline_fingerprint
    known = {child.pid for child in psutil.Process().children()}

    def kill_candidate() -> None:
        while not (tmp_path / "1" / "engine").exists():
            time.sleep(0.01)
        for child in psutil.Process().children():
            if child.pid not in known:
                child.send_signal(number)

    killer = threading.Thread(target=kill_candidate)
    killer.start()
    trial = evaluator.evaluate(route(build="hang"), tmp_path / "1", RULE)
    killer.join()
    assert trial.outcome is TrialOutcome.BUILD_FAILED
    assert f"killed by {number.name}" in trial.message
    after = evaluator.evaluate(route(latency_ms="1"), tmp_path / "2", RULE)
    assert after.outcome is TrialOutcome.FEASIBLE
    assert all(item.gain == pytest.approx(2.0) for item in after.comparisons)


def test_a_violated_epsilon_is_measured_all_the_same(
    make_evaluator: MakeEvaluator, tmp_path: Path
) -> None:
    trial = make_evaluator().evaluate(route(offset="0.5"), tmp_path / "1", RULE)
    assert trial.outcome is TrialOutcome.INFEASIBLE
    assert trial.message.startswith("output 'y' (point 'small', pair 'a'): l0 loss 1 is over")
    assert [len(item.log_ratios) for item in trial.comparisons] == [4, 4]


@pytest.mark.parametrize("how", ["nan", "shape"])
def test_outputs_that_are_no_numbers_or_of_another_shape_are_not_measured(
    make_evaluator: MakeEvaluator, tmp_path: Path, how: str
) -> None:
    trial = make_evaluator().evaluate(route(run=how), tmp_path / "1", RULE)
    assert trial.outcome is TrialOutcome.INFEASIBLE
    assert trial.comparisons == ()
    assert all(math.isinf(loss.loss) for loss in trial.losses)
    assert stored(tmp_path / "1") == trial


def test_outputs_that_change_while_timing_are_infeasible(
    make_evaluator: MakeEvaluator, tmp_path: Path
) -> None:
    trial = make_evaluator().evaluate(route(time="change"), tmp_path / "1", RULE)
    assert trial.outcome is TrialOutcome.INFEASIBLE
    assert trial.message.startswith("outputs changed while timing: output 'y'")
    assert len(trial.comparisons) == 2


def test_a_model_whose_later_runs_differ_under_the_baseline_too_is_judged_by_its_first(
    make_evaluator: MakeEvaluator, tmp_path: Path
) -> None:
    evaluator = make_evaluator({"time": "change"})
    trial = evaluator.evaluate(route(latency_ms="1"), tmp_path / "1", RULE)
    assert trial.outcome is TrialOutcome.FEASIBLE
    assert not trial.message


def test_a_baseline_that_dies_while_measured_is_started_again(
    make_evaluator: MakeEvaluator, tmp_path: Path
) -> None:
    evaluator = make_evaluator()
    trial = evaluator.evaluate(route(time="harm_once", latency_ms="1"), tmp_path / "1", RULE)
    assert trial.outcome is TrialOutcome.FEASIBLE
    assert all(item.gain == pytest.approx(2.0) for item in trial.comparisons)
    assert len((tmp_path / "model" / "baseline.pids").read_text().split()) == 2


def test_a_candidate_beside_which_the_baseline_cannot_run_fails(
    make_evaluator: MakeEvaluator, tmp_path: Path
) -> None:
    evaluator = make_evaluator()
    trial = evaluator.evaluate(route(time="harm_always"), tmp_path / "1", RULE)
    assert trial.outcome is TrialOutcome.RUN_FAILED
    assert "the baseline cannot run beside this engine: killed by SIGKILL" in trial.message


def test_a_baseline_that_no_longer_runs_is_not_blamed_on_the_route(
    make_evaluator: MakeEvaluator, tmp_path: Path
) -> None:
    evaluator = make_evaluator()
    with pytest.raises(EnvironmentNotFit, match="baseline can no longer be measured"):
        evaluator.evaluate(route(time="harm_for_good"), tmp_path / "1", RULE)


def test_a_baseline_killed_between_trials_is_started_again(
    make_evaluator: MakeEvaluator, tmp_path: Path
) -> None:
    evaluator = make_evaluator()
    before = evaluator.baseline_fingerprint
    pid = int((tmp_path / "model" / "baseline.pids").read_text())
    os.kill(pid, signal.SIGKILL)
    trial = evaluator.evaluate(route(latency_ms="1"), tmp_path / "1", RULE)
    assert trial.outcome is TrialOutcome.FEASIBLE
    assert evaluator.baseline_fingerprint == before


def test_a_fresh_baseline_is_built_again(make_evaluator: MakeEvaluator, tmp_path: Path) -> None:
    evaluator = make_evaluator()
    for number in range(2):
        folder = tmp_path / str(number)
        trial = evaluator.evaluate(route(latency_ms="1"), folder, RULE, fresh_baseline=True)
        assert trial.outcome is TrialOutcome.FEASIBLE
    assert len((tmp_path / "model" / "baseline.pids").read_text().split()) == 2


def test_an_earlier_try_in_the_folder_is_replaced(
    make_evaluator: MakeEvaluator, tmp_path: Path
) -> None:
    folder = tmp_path / "1"
    (folder / "engine").mkdir(parents=True)
    for name in ("engine/old.plan", "result.json", "result.json.partial", "child.log"):
        (folder / name).write_text("from a killed process")
    make_evaluator().evaluate(route(latency_ms="1"), folder, RULE)
    assert files(folder) == {"route.txt", "child.log", "result.json", "engine/toy.json"}
    assert "killed process" not in (folder / "child.log").read_text()


def test_an_engine_is_measured_again_without_a_build(
    make_evaluator: MakeEvaluator, tmp_path: Path
) -> None:
    evaluator = make_evaluator()
    first = evaluator.evaluate(route(latency_ms="1"), tmp_path / "1", RULE)
    again = evaluator.measure_again(first, tmp_path / "2", RULE, fresh_baseline=True)
    assert again.engine == first.engine
    assert again.outcome is TrialOutcome.FEASIBLE
    assert all(item.gain == pytest.approx(2.0) for item in again.comparisons)
    assert files(tmp_path / "2") == {"route.txt", "child.log", "result.json"}


def test_an_engine_that_is_gone_or_another_is_refused(
    make_evaluator: MakeEvaluator, tmp_path: Path
) -> None:
    evaluator = make_evaluator()
    trial = evaluator.evaluate(route(latency_ms="1"), tmp_path / "1", RULE)
    assert trial.engine is not None
    trial.engine.path.write_bytes(bytes(1024))
    with pytest.raises(UserInputError, match="not the engine that was built"):
        evaluator.measure_again(trial, tmp_path / "2", RULE)
    drop_engine(tmp_path / "1")
    with pytest.raises(UserInputError, match="not on disk"):
        evaluator.held_out_losses(trial, tmp_path / "log")


def test_held_out_pairs_are_judged_apart(make_evaluator: MakeEvaluator, tmp_path: Path) -> None:
    evaluator = make_evaluator()
    trial = evaluator.evaluate(route(offset="0.5"), tmp_path / "1", RULE)
    losses = evaluator.held_out_losses(trial, tmp_path / "held_out.log")
    assert [(loss.point, loss.pair, loss.loss) for loss in losses] == [("small", "held", 1.0)]


def test_ctrl_c_passes_through_and_leaves_no_child(
    make_evaluator: MakeEvaluator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluator = make_evaluator()
    _ = evaluator.baseline_fingerprint
    known = {child.pid for child in psutil.Process().children()}
    real = ChildProcess.request

    def interrupted(self: ChildProcess, message: dict[str, Any], *, timeout_seconds: float) -> Any:
        if message["do"] == "validate":
            raise KeyboardInterrupt
        return real(self, message, timeout_seconds=timeout_seconds)

    monkeypatch.setattr(ChildProcess, "request", interrupted)
    with pytest.raises(KeyboardInterrupt):
        evaluator.evaluate(route(latency_ms="1"), tmp_path / "1", RULE)
    assert {child.pid for child in psutil.Process().children()} == known


def test_grandchildren_of_a_build_end_with_the_trial(
    make_evaluator: MakeEvaluator, tmp_path: Path
) -> None:
    evaluator = make_evaluator()
    before = {child.pid for child in psutil.Process().children()}
    _ = evaluator.baseline_fingerprint
    trial = evaluator.evaluate(route(build="grandchild"), tmp_path / "1", RULE)
    assert trial.outcome is TrialOutcome.FEASIBLE
    evaluator.close()
    assert {child.pid for child in psutil.Process().children()} <= before


def test_a_wrong_metric_is_the_users_error_not_a_failed_route(
    make_evaluator: MakeEvaluator, tmp_path: Path, workload: Workload
) -> None:
    (tmp_path / "broken_metric.py").write_text("def figure(*_): raise RuntimeError('broken')\n")
    constraint = AccuracyConstraint(metric="broken_metric:figure")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(tmp_path)
        evaluator = make_evaluator(constraint=constraint)
        with pytest.raises(UserInputError, match="broken_metric"):
            evaluator.evaluate(route(latency_ms="1"), tmp_path / "1", RULE)


@pytest.mark.parametrize(
    "base", [{"build": "error"}, {"run": "SIGSEGV"}, {"load": "error"}, {"build": "not_applied"}]
)
def test_a_baseline_that_does_not_work_is_one_verdict(
    make_evaluator: MakeEvaluator, tmp_path: Path, base: dict[str, str]
) -> None:
    with pytest.raises(ModelError, match=r"(the toy d|killed by SIGSEGV)"):
        make_evaluator(base).evaluate(route(latency_ms="1"), tmp_path / "1", RULE)


STUDY = """
import sys
from pathlib import Path
from conftest import make_workload
from smart_tuner.measure.stop_rule import StopRule
from smart_tuner.route.build_route import BuildRoute
from smart_tuner.trial.evaluate import Evaluator, EvaluatorOptions
folder = Path(sys.argv[1])
evaluator = Evaluator(make_workload(folder), EvaluatorOptions("toy_backend:ToyBackend"), folder)
evaluator.evaluate(BuildRoute(((sys.argv[2], "hang"),)), folder / "1", StopRule())
"""


@pytest.mark.parametrize("phase", ["build", "time"])
def test_kill_9_in_mid_trial_leaves_no_process_and_no_half_result(
    make_evaluator: MakeEvaluator, tmp_path: Path, phase: str
) -> None:
    make_evaluator()  # makes the references
    environment = dict(os.environ, PYTHONPATH=str(Path(__file__).parent))
    command = [sys.executable, "-c", STUDY, str(tmp_path), phase]
    study = subprocess.Popen(command, env=environment)
    try:
        # Two arms, each with its guard, and one of them building or timing for ever.
        started = tmp_path / "1" / ("engine" if phase == "build" else "engine/toy.json")
        while not started.exists():
            time.sleep(0.01)
        while len(family := psutil.Process(study.pid).children(recursive=True)) < 4:
            time.sleep(0.01)
    finally:
        study.kill()
        study.wait()
    assert psutil.wait_procs(family, timeout=5)[1] == []
    assert not (tmp_path / "1" / "result.json").exists()
    after = make_evaluator().evaluate(route(latency_ms="1"), tmp_path / "1", RULE)
    assert after.outcome is TrialOutcome.FEASIBLE
    assert files(tmp_path / "1") == {"route.txt", "child.log", "result.json", "engine/toy.json"}
