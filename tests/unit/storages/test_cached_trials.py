import json
from pathlib import Path

import pytest

from smart_tuner.errors import UserInputError
from smart_tuner.simulate.description import Description, read_description, write_description
from smart_tuner.simulate.effects import Failure
from smart_tuner.storages.cached_trials import CachedTrials, cached_trials, recorded_compiler
from smart_tuner.storages.tuning_cache import read_tuning_cache
from smart_tuner.trial.trial import TrialOutcome

GOLDEN = Path(__file__).parents[2] / "golden"


def found(name: str) -> CachedTrials:
    return cached_trials(read_tuning_cache(GOLDEN / name))


def written(folder: Path, *routes: str, **header: str) -> CachedTrials:
    path = folder / "t.jsonl"
    rows = [{"build_route": route, "gpu_time": 1.0 + index} for index, route in enumerate(routes)]
    lines = [header] * bool(header) + rows
    path.write_text("\n".join(map(json.dumps, lines)))
    return cached_trials(read_tuning_cache(path))


def test_rows_of_one_route_are_one_trial() -> None:
    trials = found("trtexec-mixed.jsonl").trials
    assert [(str(trial.route), trial.rows, trial.outcome.value) for trial in trials] == [
        ("", 2, "feasible"),
        ("-kgen:tiling=0", 2, "feasible"),
        ("-kgen:tiling=1", 2, "infeasible"),
        ("-copy_ppg=off", 1, "feasible"),
        ("-copy_ppg=off -kgen:tiling=0", 1, "build_failed"),
        ("-copy_ppg=off -kgen:tiling=1", 1, "build_failed"),
    ]
    assert trials[1].latency_ms == pytest.approx((0.0280331 + 0.0283131) / 2)
    assert trials[1].spread == pytest.approx(0.0283131 / 0.0280331 - 1)


def test_the_baseline_has_defaults_and_what_the_expression_fixes() -> None:
    trials = found("trtexec-mixed.jsonl")
    assert trials.baseline is trials.trials[0]
    assert {knob.name: knob.default for knob in trials.database} == {
        "conv_lowering": "on",
        "copy_ppg": "on",
        "kgen:tiling": "2",
        "peep:max": "2",  # fixed there; the compiler's own default is 0
    }
    assert trials.database["kgen:tiling"].values == ("0", "1", "2")
    fastest = trials.fastest
    assert fastest
    assert str(fastest.route) == "-copy_ppg=off"
    assert trials.changed(fastest) == "-copy_ppg=off -peep:max=2"
    assert trials.apparent_gain == pytest.approx((0.0283833 + 0.0284002) / 2 / 0.0281002)


def test_a_full_search_may_lack_the_default(tmp_path: Path) -> None:
    trials = written(
        tmp_path,
        *("-a=1", "-a=2"),
        tuning_expr="-a=[1|2]",
        default_build_route="-a=0",
        searching_algorithm="full",
    )
    assert trials.baseline is None
    assert trials.apparent_gain is None
    assert trials.database["a"].choices == ("0", "1", "2")
    with pytest.raises(UserInputError, match=r"holds no run of the default route.*--out"):
        recorded_compiler(trials)


def test_without_a_header_known_knobs_have_their_defaults(tmp_path: Path) -> None:
    trials = written(tmp_path, "-kgen:tiling=0 -new=b", "-kgen:tiling=2 -new=b", "-new=a")
    assert {knob.name: knob.default for knob in trials.database} == {
        "kgen:tiling": "2",
        "new": "b",
    }
    assert trials.baseline is trials.trials[1]


def test_an_expression_that_is_none_does_no_harm(tmp_path: Path) -> None:
    trials = written(tmp_path, "-a=1", tuning_expr="]][ = -b= a=3 -", default_build_route="-a=0")
    assert [knob.name for knob in trials.database] == ["a"]


def test_knobs_that_only_look_different_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserInputError, match="knob"):
        written(tmp_path, "-\ufb01x=1 -fix=1")


class TestReplay:
    def test_recorded_trials_answer_as_the_cache_says(self) -> None:
        compiler = recorded_compiler(found("trtexec-mixed.jsonl"))
        assert compiler.latency_ms({}) == pytest.approx(0.02839175)
        assert compiler.loss({"kgen:tiling": "0"}) == 0.01
        assert compiler.loss({"kgen:tiling": "1"}) == 0.7
        assert compiler.failure({"copy_ppg": "off", "kgen:tiling": "0"}) is Failure.BUILD_ERROR
        assert "one mean over one run" in compiler.origin

    def test_they_can_be_kept(self) -> None:
        compiler = recorded_compiler(found("torch-tensorrt.jsonl"))
        text = write_description(Description(compiler))
        kept = read_description(text).compiler
        for value in ("0", "16"):
            route = {"kgen:topk_algo": value}
            assert kept.latency_ms(route) == compiler.latency_ms(route)
        assert kept.failure({"kgen:topk_algo": "32"}) is Failure.NAN

    def test_a_failure_of_another_pair_stays_one(self, tmp_path: Path) -> None:
        path = tmp_path / "t.jsonl"
        rows = [
            {"tuning_expr": "-a=[0|1]", "accuracy_parameter": {"epsilon": 0.5}},
            {"build_route": "-a=0", "gpu_time": 1.0, "accuracy_loss": {"y": 0.0}},
            {
                "build_route": "-a=1",
                "gpu_time": 0.5,
                "accuracy_loss": {"y": 0.1},
                "error_message": "child exited with status 1",
            },
        ]
        path.write_text("\n".join(map(json.dumps, rows)))
        trials = cached_trials(read_tuning_cache(path))
        assert trials.trials[1].outcome is TrialOutcome.INFEASIBLE
        assert recorded_compiler(trials).failure({"a": "1"}) is Failure.NAN
